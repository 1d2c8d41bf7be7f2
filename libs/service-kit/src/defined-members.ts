/** Members that are always there, and those that may be undefined as optional ones. */
type DefinedMembers<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** An object without its undefined members, such as the members that a patch gives. */
export function definedMembers<T extends object>(value: T): DefinedMembers<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, member]) => member !== undefined),
  ) as DefinedMembers<T>;
}
