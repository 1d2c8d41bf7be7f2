"""Run by python-client.test.ts against a mesh, whose device `pump-1` answers calls."""

import os
import unittest
from itertools import islice

from devmesh import Devmesh, DevmeshProblem

URL = os.environ["DEVMESH_URL"]
master = Devmesh(URL, os.environ["DEVMESH_KEY"])


class ClientTest(unittest.TestCase):
    def test_devices_are_created_changed_listed_and_deleted(self) -> None:
        created = master.create_device({"id": "lamp-1", "name": "Lamp"})
        self.assertTrue(created["token"].startswith("dt_"))
        changed = master.patch_device("lamp-1", {"shadow": {"state": {"desired": {"on": True}}}})
        self.assertEqual(changed["shadow"]["state"]["desired"], {"on": True})
        self.assertEqual(master.device("lamp-1")["shadow"]["version"], 1)
        self.assertEqual(master.credentials("lamp-1")["token"], created["token"])
        for number in range(5):
            master.create_device({"id": f"shelf-{number}"})
        listed = [device["id"] for device in master.devices(limit=2, filter="shelf-")]
        self.assertEqual(listed, [f"shelf-{number}" for number in range(5)])
        self.assertNotIn("lamp-1", [device["id"] for device in master.devices(online=True)])
        master.delete_device("lamp-1")
        with self.assertRaises(DevmeshProblem) as refused:
            master.device("lamp-1")
        self.assertEqual((refused.exception.status, refused.exception.reason), (404, "device_not_found"))

    def test_a_device_is_called_and_its_errors_are_problems(self) -> None:
        self.assertEqual(master.call("pump-1", "sum", [2, 3]), 5)
        with self.assertRaises(DevmeshProblem) as refused:
            master.call("pump-1", "Nothing", timeout_ms=5_000)
        self.assertEqual(refused.exception.reason, "function_not_found")
        with self.assertRaises(DevmeshProblem) as wrong:
            master.request("GET", "/api/v2/devices", query={"limt": 1})
        self.assertEqual([one["pointer"] for one in wrong.exception.problem["errors"]], ["/query/limt"])

    def test_records_are_read_page_after_page(self) -> None:
        texts = [record["message"] for record in master.records(device_id="pump-1", filter="/numbers", limit=3)]
        self.assertEqual(texts, [str(number) for number in range(10)])
        self.assertEqual(list(master.records(filter="of nobody")), [])

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


if __name__ == "__main__":
    unittest.main()
