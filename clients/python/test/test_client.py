"""Run by python-client.test.ts against a mesh, whose device `pump-1` answers calls."""

import asyncio
import hashlib
import os
import socket
import tempfile
import typing
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from threading import Thread

from devmesh import AsyncDevmesh, Devmesh, DevmeshProblem, DevmeshUnreachable, models

URL = os.environ["DEVMESH_URL"]
master = Devmesh(URL, os.environ["DEVMESH_KEY"])


@contextmanager
def server(location: str | None, received: list[str]) -> Iterator[str]:
    """Answers `[]`, or redirects to `location`; keeps the `Authorization` that it receives."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers["Authorization"])
            self.send_response(200 if location is None else 302)
            self.send_header("Content-Length", "2" if location is None else "0")
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()
            if location is None:
                self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        Thread(target=listening.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()


class ClientTest(unittest.TestCase):
    def test_devices_are_created_changed_listed_and_deleted(self) -> None:
        created = master.create_device({"id": "lamp-1", "name": "Lamp"})
        self.assertTrue(created["token"].startswith("dt_"))
        changed = master.patch_device("lamp-1", {"shadow": {"state": {"desired": {"on": True}}}})
        self.assertEqual(changed["shadow"]["state"]["desired"], {"on": True})
        self.assertEqual(master.read_device("lamp-1")["shadow"]["version"], 1)
        self.assertEqual(master.read_credentials("lamp-1")["token"], created["token"])
        for number in range(5):
            master.create_device({"id": f"shelf-{number}"})
        listed = [device["id"] for device in master.devices(limit=2, filter="shelf-")]
        self.assertEqual(listed, [f"shelf-{number}" for number in range(5)])
        self.assertNotIn("lamp-1", [device["id"] for device in master.devices(online=True)])
        master.delete_device("lamp-1")
        with self.assertRaises(DevmeshProblem) as refused:
            master.read_device("lamp-1")
        self.assertEqual((refused.exception.status, refused.exception.reason), (404, "device_not_found"))

    def test_a_device_is_called_and_its_errors_are_problems(self) -> None:
        self.assertEqual(master.call("pump-1", "sum", [2, 3]), 5)
        with self.assertRaises(DevmeshProblem) as refused:
            master.call("pump-1", "Nothing", timeout_ms=5_000)
        self.assertEqual(refused.exception.reason, "function_not_found")
        with self.assertRaises(DevmeshProblem) as wrong:
            master.request("GET", "/api/v2/devices", query={"limt": 1})
        self.assertEqual([one["pointer"] for one in wrong.exception.problem["errors"]], ["/query/limt"])

    def test_firmware_is_sent_from_a_file_and_read_in_ranges(self) -> None:
        content = bytes(range(250)) * 2_000
        sha256 = hashlib.sha256(content).hexdigest()
        declared = master.create_firmware({"name": "py", "version": "1", "size": len(content), "sha256": sha256})
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            self.assertTrue(master.upload_firmware(declared["id"], file)["ready"])
        with master.download_firmware(declared["id"]) as whole:
            self.assertEqual(whole.read(), content)
        with master.download_firmware(declared["id"], "bytes=10-19") as part:
            self.assertEqual((part.status, part.read()), (206, content[10:20]))
        with self.assertRaises(DevmeshProblem) as refused:
            master.upload_firmware(declared["id"], content)
        self.assertEqual(refused.exception.reason, "content_exists")

    def test_a_job_is_created_waited_for_and_listed_by_device(self) -> None:
        ids = ["job-1", "job-2", "job-3"]
        for id in ids:
            master.create_device({"id": id})
        labels = {"kind": "shadow", "patch": {"tags": {"labels": ["shelf"]}}}
        job = master.create_job({"target": {"ids": ids}, "action": labels})
        seen: list[str] = []
        done = master.wait_for_job(job["id"], on_progress=lambda read: seen.append(read["state"]))
        self.assertEqual((done["state"], done["counts"]["succeeded"], seen[-1]), ("done", 3, "done"))
        listed = master.list_job_executions(job["id"], limit=2, state="succeeded")
        self.assertEqual(sorted(execution["device_id"] for execution in listed), ids)

        async def wait() -> None:
            async with AsyncDevmesh(URL, os.environ["DEVMESH_KEY"]) as devmesh:
                sleeping = await devmesh.create_job({"target": {"ids": ids}, "action": {"kind": "rpc", "func": "sum"}})
                await devmesh.change_job(sleeping["id"], {"state": "paused"})
                paused = await devmesh.wait_for_job(sleeping["id"], or_paused=True)
                self.assertEqual(paused["why"], "by_request")
                with self.assertRaises(DevmeshProblem):
                    await devmesh.wait_for_job("none")

        asyncio.run(wait())

    def test_records_are_read_page_after_page(self) -> None:
        texts = [record["message"] for record in master.records(device_id="pump-1", filter="/numbers", limit=3)]
        self.assertEqual(texts, [str(number) for number in range(10)])
        self.assertEqual(list(master.records(filter="of nobody")), [])

    def test_a_record_is_parsed_as_json(self) -> None:
        records = list(master.records(device_id="pump-1", filter="/numbers", limit=5))
        self.assertEqual([record.json() for record in records], list(range(10)))
        newest = next(master.read_latest("pump-1"))
        self.assertEqual((newest["topic"], newest.json()), ("db/pump-1/numbers", 9))

    def test_alerts_of_a_rule_are_followed_acknowledged_and_silenced(self) -> None:
        channel = master.create_channel({"kind": "mail", "name": "On call", "to": ["ann@example.com"]})
        when = {"kind": "shadow", "pointer": "/state/desired/on", "is": "==", "than": True}
        rule = master.create_rule({"name": "On", "when": when, "notify": [channel["id"]]})
        master.create_device({"id": "alert-1"})
        master.patch_device("alert-1", {"shadow": {"state": {"desired": {"on": True}}}})
        alert = next(frame for frame in master.notifications(after=0) if frame["name"] == "alert")["data"]
        self.assertEqual((alert["rule_id"], alert["device_id"], alert["value"]), (rule["id"], "alert-1", True))
        self.assertEqual(master.try_rule({"name": "On", "when": when})["matching"], 1)
        firing = [one["id"] for one in master.list_alerts(state="firing", limit=1)]
        self.assertEqual(firing, [alert["id"]])
        changed = master.change_alert(alert["id"], {"acknowledged": True, "note": "seen"})
        self.assertIsNotNone(changed["acknowledged_at"])
        self.assertEqual(master.summarize_alerts()["unacknowledged"], 0)
        silence = master.create_silence({"rule_ids": [rule["id"]], "until": "2999-01-01T00:00:00Z"})
        self.assertEqual([one["id"] for one in master.list_silences()], [silence["id"]])
        master.delete_silence(silence["id"])
        master.delete_rule(rule["id"])
        master.delete_channel(channel["id"])

    def test_webhooks_are_created_tested_changed_and_deleted(self) -> None:
        webhook = master.create_webhook({"url": "http://127.0.0.1:1/", "events": ["data"]})
        self.assertTrue(webhook["secret"].startswith("whsec_"))
        self.assertEqual(master.test_webhook(webhook["id"])["error"], "ECONNREFUSED")
        self.assertFalse(master.patch_webhook(webhook["id"], {"enabled": False})["enabled"])
        self.assertEqual(list(master.list_dead_deliveries(webhook["id"])), [])
        self.assertEqual([one["id"] for one in master.list_webhooks()], [webhook["id"]])
        master.delete_webhook(webhook["id"])

    def test_operations_have_typed_keywords_which_refuse_others(self) -> None:
        master.create_device({"id": "typed-1"})
        changed = master.patch_device("typed-1", {"name": "Typed"}, if_match=None)
        self.assertEqual(changed["name"], "Typed")
        with self.assertRaises(TypeError):
            master.list_devices(limt=1)
        self.assertIsNone(master.delete_device("typed-1"))

    def test_the_types_of_all_bodies_and_methods_can_be_read_at_run_time(self) -> None:
        named = [getattr(models, name) for name in models.__all__]
        for one in filter(typing.is_typeddict, named):
            self.assertNotEqual(typing.get_type_hints(one, include_extras=True), {}, one)
        self.assertEqual([one for one in named if isinstance(one, str)], [])
        for one in [vars(base)[name] for kind in (Devmesh, AsyncDevmesh) for base in kind.__mro__ for name in vars(base)]:
            if callable(one) and hasattr(one, "__annotations__"):
                typing.get_type_hints(one)

    def test_the_asyncio_twin_calls_lists_and_follows(self) -> None:
        async def run() -> None:
            async with AsyncDevmesh(URL, os.environ["DEVMESH_KEY"]) as devmesh:
                sums = await asyncio.gather(*(devmesh.call("pump-1", "sum", [one, 1]) for one in range(20)))
                self.assertEqual(sums, list(range(1, 21)))
                numbers = [record.json() async for record in devmesh.records(device_id="pump-1", limit=3)]
                self.assertEqual(numbers, list(range(10)))
                await devmesh.create_device({"id": "async-1"})
                async for frame in devmesh.notifications(after=0, device="async-1"):
                    self.assertEqual((frame["name"], frame["id"]), ("created", "async-1"))
                    break
                await devmesh.delete_device("async-1")
                with self.assertRaises(DevmeshProblem):
                    await devmesh.read_device("async-1")

        asyncio.run(run())

    def test_a_refused_connection_names_the_server(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with self.assertRaises(DevmeshUnreachable) as refused:
            Devmesh(url, "mk_secret").read_device("pump-1")
        self.assertEqual(str(refused.exception), f"{url} refused the connection")

    def test_notifications_are_followed_and_replayed(self) -> None:
        master.create_device({"id": "bell-1"})
        master.patch_device("bell-1", {"name": "Bell"})
        frames = list(islice(master.notifications(after=0, device="bell-1"), 2))
        self.assertEqual([frame["name"] for frame in frames], ["created", "updated"])
        self.assertEqual(frames[1]["data"]["name"], "Bell")
        key = master.create_key({"device_id": "bell-1"})["key"]
        with self.assertRaises(DevmeshProblem) as refused:
            next(Devmesh(URL, key).notifications())
        self.assertEqual(refused.exception.reason, "wrong_key_kind")

    def test_a_redirect_is_refused_and_takes_the_key_nowhere(self) -> None:
        received: list[str] = []
        with server(None, received) as other, server(other, []) as redirecting:
            client = Devmesh(redirecting, "mk_secret")
            for ask in (
                lambda: client.read_device("pump-1"),
                lambda: next(client.devices()),
                lambda: next(client.notifications()),
            ):
                with self.assertRaises(DevmeshProblem) as refused:
                    ask()
                self.assertEqual(refused.exception.status, 302)
                self.assertIn("redirect", str(refused.exception))
        self.assertEqual(received, [])

    def test_a_malformed_key_is_refused_without_being_quoted(self) -> None:
        for key in ("mk_sec\nret", "mk_secret€", "mk secret", ""):
            with self.assertRaises(ValueError) as refused:
                Devmesh(URL, key).read_device("pump-1")
            self.assertNotIn("sec", repr(refused.exception.args))
            self.assertIsNone(refused.exception.__context__)


if __name__ == "__main__":
    unittest.main()
