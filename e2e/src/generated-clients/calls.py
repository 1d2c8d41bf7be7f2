import sys

from openapi_client import *
from openapi_client.api import *
from openapi_client.exceptions import ApiException
from openapi_client.models import *

url, key, id = sys.argv[1:]
client = ApiClient(Configuration(host=url, access_token=key))
devices, alerts = DevicesApi(client), AlertsApi(client)

print(devices.create_device(DeviceInput(id=id, name="Lamp")).id)
patch = DevicePatch(shadow=ShadowPatch(state=ShadowStatePatch(desired={"on": True})))
print(devices.patch_device(id, patch).shadow.version)
print(str(devices.read_device(id).shadow.state.desired["on"]).lower())
print(devices.list_devices(filter=id)[0].id)
value = ValueConditionInput(kind="value", topic="temp", var_is=">", than=5)
rule = AlertRuleInput(name="Warm", when=RuleConditionInput(value))
print(alerts.create_rule(rule).when.actual_instance.kind)
print(alerts.create_silence(SilenceInput(until="2099-12-31T18:00:00Z")).until.year)
patch = ShadowActionPatch(state=ShadowActionState(desired={"on": False}))
action = ActionInput(ShadowActionInput(kind="shadow", patch=patch))
job = WorkApi(client).create_job(JobInput(target=JobTargetInput(ids=[id]), action=action))
print(job.actual_instance.action.actual_instance.kind)
print(WebhooksApi(client).create_webhook(WebhookInput(url="http://127.0.0.1:9/", events=["offline"])).events[0])
try:
    RPCApi(client).call_function(id, "Sys.GetInfo")
except ApiException as refused:
    print(refused.data.reason)
devices.delete_device(id)
print("deleted")
