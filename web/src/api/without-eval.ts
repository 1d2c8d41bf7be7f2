import { config } from "zod";

// The page's Content-Security-Policy forbids `eval`, which zod would use. Imported before any schema.
config({ jitless: true });
