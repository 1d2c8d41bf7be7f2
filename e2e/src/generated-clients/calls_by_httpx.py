import sys
from datetime import datetime

from devmesh_client import AuthenticatedClient
from devmesh_client.api.alerts import create_rule, create_silence
from devmesh_client.api.devices import create_device, delete_device, list_devices, patch_device, read_device
from devmesh_client.api.rpc import call_function
from devmesh_client.api.webhooks import create_webhook
from devmesh_client.api.work import create_job
from devmesh_client.models import *

url, key, id = sys.argv[1:]
client = AuthenticatedClient(url, key)

print(create_device.sync(client=client, body=DeviceInput(id=id, name="Lamp")).id)
desired = ShadowStatePatchDesiredType0.from_dict({"on": True})
patch = DevicePatch(shadow=ShadowPatch(state=ShadowStatePatch(desired=desired)))
print(patch_device.sync(id, client=client, body=patch).shadow.version)
print(str(read_device.sync(id, client=client).shadow.state.desired["on"]).lower())
print(list_devices.sync(client=client, filter_=id)[0].id)
value = ValueConditionInput(kind="value", topic="temp", is_=ValueConditionInputIs.VALUE_0, than=5)
print(create_rule.sync(client=client, body=AlertRuleInput(name="Warm", when=value)).when.kind)
silence = SilenceInput(until=datetime.fromisoformat("2099-12-31T18:00:00Z"))
print(create_silence.sync(client=client, body=silence).until.year)
state = ShadowActionState(desired=ShadowActionStateDesired.from_dict({"on": False}))
action = ShadowActionInput(kind="shadow", patch=ShadowActionPatch(state=state))
job = create_job.sync(client=client, body=JobInput(target=JobTargetInput(ids=[id]), action=action))
print(job.action.kind)
webhook = WebhookInput(url="http://127.0.0.1:9/", events=["offline"])
print(create_webhook.sync(client=client, body=webhook).events[0])
print(call_function.sync(id, "Sys.GetInfo", client=client, body={}).reason)
if delete_device.sync_detailed(id, client=client).status_code == 204:
    print("deleted")
