import type { ApiClient } from "../../api/api-client.ts";
import { ApiProblem } from "../../api/api-problem.ts";

/**
 * Queues given-up mail again, one after the other, and returns how many; mail that another user queued meanwhile
 * counts, too. After all were tried, rejects with the first failure.
 */
export async function retryMail(api: ApiClient, ids: readonly string[]): Promise<number> {
  const failures: unknown[] = [];
  for (const id of ids) {
    try {
      await api.call("retryDeadMail", { params: { id } });
    } catch (error) {
      const gone = error instanceof ApiProblem && error.reason === "mail_not_found";
      if (!gone) failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return ids.length;
}
