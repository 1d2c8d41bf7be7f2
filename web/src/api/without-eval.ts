import { config } from "zod";

// The page's Content-Security-Policy allows no code made of strings, which zod would try. Imported before any schema.
config({ jitless: true });
