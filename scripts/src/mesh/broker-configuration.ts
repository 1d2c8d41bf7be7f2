import { mesh } from "@devmesh/contracts/mesh";
import { brokerConfig, brokerUsers } from "@devmesh/service-kit/broker-config";
import { createAccountKey } from "@devmesh/service-kit/nkey";
import { type DataFolder, replaceFile } from "./data-folder.ts";
import type { Installation, MakeIssuer } from "./installation.ts";
import type { MeshSettings } from "./settings.ts";
