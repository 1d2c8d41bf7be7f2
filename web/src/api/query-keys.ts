/** Keys of the query cache, by what is cached: frames of the stream change or invalidate what is below them. */
export const queryKeys = {
  /** Below it: one list for each selection of devices. */
  deviceLists: ["devices"],
  /** One device as `GET /devices/:id` answers it. */
  device: (id: string) => ["device", id],
  keys: ["keys"],
  customers: ["customers"],
  deadMail: ["dead-mail"],
  /** Where devices connect. */
  mqttAddress: ["mqtt-address"],
  /** The OpenAPI document. */
  apiDocument: ["api-document"],
} as const satisfies Record<string, readonly string[] | ((id: string) => readonly string[])>;
