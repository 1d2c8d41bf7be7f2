import { z } from "zod";
import {
  cursor_invalid,
  defineContract,
  defineEvent,
  defineEvents,
  device_not_found,
  done,
  doneIfRepeated,
  idempotent,
  notIdempotent,
  pageOf,
  WireError,
} from "./contract.ts";
import { Acl, AclWithoutPointers, FunctionName, NamedQuery, QueryName } from "./model/acl.ts";
import { Board, BoardInput, BoardPatch, boardBounds, ListedBoard } from "./model/board.ts";
import {
  CreatedDevice,
  Device,
  DeviceCredentials,
  DeviceInput,
  DeviceListItem,
  DeviceListOrder,
} from "./model/device.ts";
import { DeviceCondition } from "./model/device-condition.ts";
import { DeviceFacets, facetNames } from "./model/device-facets.ts";
import { DeviceId } from "./model/device-id.ts";
import {
  DeviceDiagnosis,
  Diagnosis,
  DiagnosisWord,
  diagnosisFrames,
  UnknownDevice,
} from "./model/diagnostics.ts";
import { FleetSummary } from "./model/fleet.ts";
import { JsonObject } from "./model/json.ts";
import { Throttling } from "./model/notification.ts";
import { maxViews, SavedView, ViewInput, ViewPatch } from "./model/saved-view.ts";
import { SeriesPointer } from "./model/series.ts";
import { ShadowDelta } from "./model/shadow.ts";
import { Timestamp } from "./model/time.ts";
import { Violation } from "./model/violation.ts";
import { Principal } from "./principal.ts";

const ofDevice = z.object({ id: DeviceId });

/** A delta, and what its device wants of it. */
const DeviceDelta = ShadowDelta.extend({
  /** Whether the device is sent the metadata. */
  has_metadata: z.boolean().default(true),
});

const device_being_deleted = {
  code: "conflict",
  when: "A device of that id is still being cleaned up; retry later, usually within 30 s.",
} as const;

const invalid_device = {
  code: "invalid_argument",
  when: "A member of the body breaks a rule of the device or its shadow.",
  details: z.array(Violation),
} as const;
const shadow_too_large = {
  code: "invalid_argument",
  when: "A section of the shadow would exceed its size.",
  details: z.array(Violation),
} as const;

const too_many_scans = {
  code: "resource_exhausted",
  when: "Too many conditions on shadow values are being checked; retry later.",
} as const;

const view_not_found = { code: "not_found", when: "There is no saved view of that id." } as const;
const board_not_found = { code: "not_found", when: "There is no board of that id." } as const;
const view_name_taken = { code: "conflict", when: "Another saved view has that name." } as const;

/** Why a change of a device is refused. */
const refusals = {
  device_not_found,
  invalid_device,
  shadow_too_large,
  not_writable: {
    code: "permission_denied",
    when: "The key may not write a member of the body; nothing was applied.",
    details: z.object({ pointers: z.array(z.string()) }),
  },
  version_conflict: {
    code: "conflict",
    when: "`shadow.version` is not the shadow's version.",
    details: z.object({ version: z.int() }),
  },
  precondition_failed: {
    code: "conflict",
    when: "`If-Match` does not name the device's current ETag.",
  },
} as const;

/** Devices of one call that gathers what is asked of several. */
export const maxGatheredDevices = 64;

/** A device as the caller may see it, and its ETag. `etag` comes first, so that `device` can be passed on unparsed. */
const TaggedDevice = z.object({
  etag: z.string(),
  /** {@link Device} for a master key; reduced for the others (api.md, Device key, Device public key and the ACL). */
  device: JsonObject,
});

/** Of a device: its ACL without pointers, which readers of the first release refuse. */
const withoutPointers = { acl: AclWithoutPointers };

const query_not_found = { code: "not_found", when: "The device's ACL names no such query." } as const;

/** The registry: devices, their shadows, ACLs and presence. */
export const devices = defineContract({
  service: "devices",
  version: 1,
  methods: {
    /**
     * Oldest first unless `order` says otherwise. `limit` is the most that the caller still wants; a page may hold
     * fewer.
     */
    listDevices: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({
        limit: z.int().min(1).optional(),
        after: z.string().optional(),
        order: DeviceListOrder.optional(),
        online: z.boolean().optional(),
        /** Substring of id, name or a label. */
        filter: z.string().optional(),
        where: DeviceCondition.optional(),
      }),
      out: pageOf(DeviceListItem.extend(withoutPointers)),
      errors: { cursor_invalid, too_many_scans },
    },
    /** Ids of the devices that meet a condition, the oldest first; with `ids` of these alone. */
    selectDevices: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({
        where: DeviceCondition,
        ids: z.array(DeviceId).max(7_000).optional(),
        after: z.string().optional(),
        limit: z.int().min(1).max(1_000),
      }),
      out: pageOf(DeviceId),
      errors: { cursor_invalid, too_many_scans },
    },
    /** Counts the devices that meet a condition, in all and by the values of facets. Presence is 3 s old at most. */
    facetDevices: {
      ...idempotent,
      in: z.object({ where: DeviceCondition, facets: z.array(z.enum(facetNames)) }),
      out: DeviceFacets,
      errors: { too_many_scans },
    },
    /** How many devices `listDevices` lists without conditions. */
    countDevices: { ...idempotent, in: z.object({}), out: z.object({ count: z.int().min(0) }) },
    /** All devices in numbers, from memory: how often they are counted depends on how long that takes. */
    summarizeFleet: { ...idempotent, in: z.object({}), out: FleetSummary },
    createDevice: {
      ...notIdempotent,
      deadlineMs: 10_000,
      in: DeviceInput,
      out: CreatedDevice.extend(withoutPointers),
      errors: {
        device_exists: { code: "conflict", when: "A device of that id exists." },
        device_being_deleted,
        invalid_device,
        shadow_too_large,
      },
    },
    /** What the principal may see of the device. */
    readDevice: {
      ...idempotent,
      in: z.object({ id: DeviceId, principal: Principal }),
      out: TaggedDevice,
      errors: { device_not_found },
    },
    /** Checks rights, then the body, then versions; applies all of the patch or nothing. */
    patchDevice: {
      ...notIdempotent,
      in: z.object({
        id: DeviceId,
        principal: Principal,
        /** A DevicePatch; the owner parses it, since for a restricted key a foreign member is a matter of rights. */
        patch: JsonObject,
        if_match: z.string().optional(),
        /**
         * When the broker took the device's message. One that was sent to an earlier device of that id is not applied.
         */
        taken_at: Timestamp.optional(),
      }),
      out: TaggedDevice,
      errors: refusals,
    },
    /**
     * Changes of shadows that devices ask for themselves: those of one device in their order, each with an outcome of
     * its own. Its error is one of those below.
     */
    updateShadows: {
      ...notIdempotent,
      in: z.object({
        updates: z
          .array(
            z.object({
              id: DeviceId,
              /** The `shadow` of a DevicePatch. */
              patch: JsonObject,
              /** As in `patchDevice`. */
              taken_at: Timestamp,
            }),
          )
          .max(maxGatheredDevices),
      }),
      out: z.array(
        z.union([ShadowDelta.pick({ version: true, timestamp: true }), z.object({ error: WireError })]),
      ),
      errors: refusals,
    },
    /** The delta as the device gets it on `ID/shadow/delta`. */
    readDelta: { ...idempotent, in: ofDevice, out: ShadowDelta, errors: { device_not_found } },
    /**
     * The deltas as devices get them on `ID/shadow/delta`, in the order of their ids; null for no device. There may be
     * fewer than were asked for, but one at least.
     */
    readDeltas: {
      ...idempotent,
      in: z.object({ ids: z.array(DeviceId).min(1).max(maxGatheredDevices) }),
      out: z.array(DeviceDelta.nullable()),
    },
    /** Marks the device for deletion and ends its access; the clean-up goes on after the reply. */
    deleteDevice: {
      ...idempotent,
      deadlineMs: 15_000,
      in: ofDevice,
      out: done,
      errors: { device_not_found: doneIfRepeated(device_not_found) },
    },
    readCredentials: { ...idempotent, in: ofDevice, out: DeviceCredentials, errors: { device_not_found } },
    /** A new MQTT password; the old one is dead and its sessions are closed. */
    rotateToken: {
      ...notIdempotent,
      deadlineMs: 10_000,
      in: ofDevice,
      out: DeviceCredentials.pick({ token: true }),
      errors: { device_not_found },
    },
    rotatePublicKey: {
      ...notIdempotent,
      deadlineMs: 10_000,
      in: ofDevice,
      out: DeviceCredentials.pick({ public_key: true }),
      errors: { device_not_found },
    },
    /** Whether the device exists and has an MQTT connection, for the bridge to fail fast. */
    readPresence: {
      ...idempotent,
      deadlineMs: 2_000,
      in: ofDevice,
      out: z.object({
        online: z.boolean(),
        /** When it connected last; null without a connection, absent from replicas of an older release. */
        connected_at: Timestamp.nullable().optional(),
      }),
      errors: { device_not_found },
    },
    /** Which of these devices have an MQTT connection, whether they exist or not. */
    readPresences: {
      ...idempotent,
      deadlineMs: 2_000,
      in: z.object({ ids: z.array(DeviceId).max(1_000) }),
      out: z.object({ online: z.array(DeviceId) }),
    },
    /**
     * What happened to the device on its way to the mesh, newest first: at most 50 entries since this replica started,
     * none of an earlier device of that id.
     */
    readDiagnostics: {
      ...idempotent,
      in: ofDevice,
      out: z.array(Diagnosis),
      errors: { device_not_found },
    },
    /** Entries of the diagnostics of all devices, newest first; of what went wrong unless `name` says otherwise. */
    listDiagnostics: {
      ...idempotent,
      deadlineMs: 10_000,
      in: z.object({
        name: DiagnosisWord.optional(),
        /** Only of devices that meet it. */
        where: DeviceCondition.optional(),
        /** Only what happened then or later. */
        since: Timestamp.optional(),
        limit: z.int().min(1).optional(),
        after: z.string().optional(),
      }),
      out: pageOf(DeviceDiagnosis),
      errors: { cursor_invalid, too_many_scans },
    },
    /** Refused logins of ids that are no device now, newest first; at most 50. */
    listUnknownDevices: { ...idempotent, in: z.object({}), out: z.array(UnknownDevice) },
    /** MQTT client ids that the device is connected with now, over all servers of the broker. */
    readConnections: { ...idempotent, in: ofDevice, out: z.object({ client_ids: z.array(z.string()) }) },
    /** What a public key of the device may see, call and query, for streams that are cut by it. */
    readAccess: {
      ...idempotent,
      deadlineMs: 2_000,
      in: ofDevice,
      out: z.object({
        acl: AclWithoutPointers,
        /** What happened before belongs to an earlier device of that id. */
        created_at: Timestamp,
      }),
      errors: { device_not_found },
    },
    /** Whether the device's ACL lets a public key call a function or run a query; answers the query. */
    authorize: {
      ...idempotent,
      deadlineMs: 2_000,
      in: z.object({
        id: DeviceId,
        action: z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("rpc"), func: FunctionName }),
          z.object({ kind: z.literal("query"), name: QueryName }),
        ]),
      }),
      out: z.object({ query: AclWithoutPointers.shape.queries.valueType.nullable() }),
      errors: {
        device_not_found,
        rpc_not_permitted: {
          code: "permission_denied",
          when: "The device's ACL does not list that function.",
        },
        query_not_found,
      },
    },
    /** Which numbers a public key of the device may read by a query of the ACL. */
    authorizeSeries: {
      ...idempotent,
      deadlineMs: 2_000,
      in: z.object({ id: DeviceId, name: QueryName }),
      out: z.object({
        query: z.object({
          topic: NamedQuery.shape.topic,
          since: NamedQuery.shape.since,
          pointers: z.array(SeriesPointer),
        }),
      }),
      errors: {
        device_not_found,
        query_not_found,
        series_not_permitted: {
          code: "permission_denied",
          when: "The query of the device's ACL has no `pointers`.",
        },
      },
    },
    /** The saved views of the list of devices, the oldest first. */
    listViews: { ...idempotent, in: z.object({}), out: z.array(SavedView).max(maxViews) },
    createView: {
      ...notIdempotent,
      in: ViewInput,
      out: SavedView,
      errors: {
        view_name_taken,
        too_many_views: {
          code: "conflict",
          when: `There are ${maxViews} saved views, as many as there may be; one must be deleted first.`,
        },
      },
    },
    patchView: {
      ...idempotent,
      in: z.object({ id: z.string(), ...ViewPatch.shape }),
      out: SavedView,
      errors: { view_not_found, view_name_taken },
    },
    deleteView: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: { view_not_found: doneIfRepeated(view_not_found) },
    },
    /** The boards without their panels, the oldest first. */
    listBoards: { ...idempotent, in: z.object({}), out: z.array(ListedBoard).max(boardBounds.boards) },
    createBoard: {
      ...notIdempotent,
      in: BoardInput,
      out: Board,
      errors: {
        too_many_boards: {
          code: "conflict",
          when: `There are ${boardBounds.boards} boards, as many as there may be; one must be deleted first.`,
        },
      },
    },
    readBoard: { ...idempotent, in: z.object({ id: z.string() }), out: Board, errors: { board_not_found } },
    patchBoard: {
      ...notIdempotent,
      in: z.object({ id: z.string(), ...BoardPatch.shape }),
      out: Board,
      errors: {
        board_not_found,
        board_changed: {
          code: "conflict",
          when: "`revision` is not the revision of the board.",
          details: z.object({ revision: z.int() }),
        },
      },
    },
    deleteBoard: {
      ...idempotent,
      in: z.object({ id: z.string() }),
      out: done,
      errors: { board_not_found: doneIfRepeated(board_not_found) },
    },
  },
});

const about = { id: DeviceId, timestamp: Timestamp };

const ofDeviceItself = {
  ...about,
  device: Device.extend(withoutPointers),
  /** The whole ACL, where its queries have pointers. */
  acl: Acl.optional(),
};

/** Best effort: a crash between store and publish can lose the event, never the state. */
export const deviceEvents = defineEvents({
  service: "devices",
  events: {
    online: defineEvent(z.object(about), (event) => event.id),
    /** 2 s after the last connection went. */
    offline: defineEvent(z.object(about), (event) => event.id),
    created: defineEvent(z.object(ofDeviceItself), (event) => event.id),
    /** `labels`: those that it had; absent in events of an earlier release. */
    deleted: defineEvent(z.object({ ...about, labels: z.array(z.string()).optional() }), (event) => event.id),
    /** Name, ACL or shadow changed. */
    updated: defineEvent(z.object(ofDeviceItself), (event) => event.id),
    /** Its connections are closed and its logins refused for `refused_ms`. */
    throttled: defineEvent(z.object({ ...about, ...Throttling.shape }), (event) => event.id),
    /** A bounded share of what diagnostics record, also of ids that are no device. */
    diagnosed: defineEvent(
      z.object({ ...about, ...Diagnosis.shape, name: z.enum(diagnosisFrames) }),
      (event) => event.id,
    ),
  },
});
