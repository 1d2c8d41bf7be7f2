/** Keys of the query cache: frames of the stream change or invalidate the data below them. */
export const queryKeys = {
  /** Below it: one list for each selection of devices. */
  deviceLists: ["devices"],
  /** One device as `GET /devices/:id` returns it. */
  device: (id: string) => ["device", id],
  /** What happened between a device and the mesh. */
  diagnostics: (id: string) => ["diagnostics", id],
  /** The newest record of each topic of a device. */
  latest: (id: string) => ["latest", id],
  /** The record that a device published last. */
  newestRecord: (id: string) => ["newest-record", id],
  keys: ["keys"],
  /** Below the keys, since the same frames report them. */
  sessions: ["keys", "sessions"],
  customers: ["customers"],
  deadMail: ["dead-mail"],
  /** How mail leaves. */
  mailDelivery: ["mail-delivery"],
  /** Where devices connect. */
  mqttAddress: ["mqtt-address"],
  /** Whether the server answers, before the sign-in. */
  serverAnswers: ["server-answers"],
  keyPlace: ["key-place"],
  /** State of the notification stream. */
  stream: ["stream"],
  /** When the notification stream was lost. */
  outage: ["outage"],
  /** Observation of the mesh, and the state of its stream. */
  mesh: ["mesh"],
  /** The course of the last day. */
  meshHistory: ["mesh-history"],
  /** The last changes that requests made. */
  meshChanges: ["mesh-changes"],
  unknownDevices: ["unknown-devices"],
  /** What went wrong with devices in the last day. */
  problems: ["problems"],
  /** The first two devices, which show whether an installation is new. */
  firstDevices: ["first-devices"],
  /** The devices that have been silent. */
  silentDevices: ["silent-devices"],
  /** Below it: one list for each selection of records. */
  records: ["records"],
  /** Below it: the numbers of a range of records. */
  numbers: ["numbers"],
  /** Below it: the numbers of a range with more records than are read. */
  wholeNumbers: ["whole-numbers"],
  /** Below it: numbers of devices over time, by what is asked for. */
  series: ["series"],
  /** The series that a device has. */
  deviceSeries: (id: string) => ["device-series", id],
  /** Below it: devices that meet a condition, for their names and units. */
  devicesWhere: ["devices-where"],
  boards: ["boards"],
  board: (id: string) => ["board", id],
  /** Frames of a device since its log is shown. */
  log: (id: string) => ["log", id],
  /** Below it: what a search for devices found. */
  foundDevices: ["found-devices"],
  /** The saved views of the list of devices. */
  savedViews: ["saved-views"],
  /** Counts of the devices that meet a condition. */
  deviceFacets: ["devices-facets"],
  /** Devices that are to be selected in the list. */
  wantedSelection: ["wanted-selection"],
  /** The newest jobs. */
  jobs: ["jobs"],
  job: (id: string) => ["job", id],
  /** Below it: the executions of a job, by state. */
  jobExecutions: (id: string) => ["job-executions", id],
  /** Devices that a new job is for. */
  jobTarget: ["job-target"],
  firmware: ["firmware"],
  /** What goes on while other views are shown. */
  backgroundWork: ["background-work"],
  /** What waits for a device, and what it did. */
  executions: (id: string) => ["executions", id],
  /** What fires now, in numbers. */
  alertSummary: ["alert-summary"],
  /** Below it: one list for each selection of alerts. */
  alerts: ["alerts"],
  alert: (id: string) => ["alert", id],
  rules: ["rules"],
  rule: (id: string) => ["rules", id],
  channels: ["channels"],
  silences: ["silences"],
  webhooks: ["webhooks"],
  /** Below the webhooks, since the same frames report it. */
  webhook: (id: string) => ["webhooks", id],
  /** Events that were given up. */
  deadDeliveries: (id: string) => ["webhooks", id, "dead"],
  /** Calls of functions of a device in this session. */
  calls: (id: string) => ["calls", id],
} as const satisfies Record<string, readonly string[] | ((id: string) => readonly string[])>;
