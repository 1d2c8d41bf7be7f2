// @boundaries-ignore jest has one set-up for every package
export { default } from "../jest.config.base.js";
