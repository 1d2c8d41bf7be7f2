import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.openapitools.client.*;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Calls {
    public static void main(String[] args) throws Exception {
        String url = args[0], key = args[1], id = args[2];
        ApiClient client = new ApiClient();
        client.updateBaseUri(url);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        DevicesApi devices = new DevicesApi(client);
        AlertsApi alerts = new AlertsApi(client);

        System.out.println(devices.createDevice(new DeviceInput().id(id).name("Lamp")).getId());
        ShadowStatePatch desired = new ShadowStatePatch().desired(Map.of("on", true));
        DevicePatch patch = new DevicePatch().shadow(new ShadowPatch().state(desired));
        System.out.println(devices.patchDevice(id, patch, null).getShadow().getVersion());
        System.out.println(devices.readDevice(id).getShadow().getState().getDesired().get("on"));
        System.out.println(devices.listDevices(null, null, null, null, id, null).get(0).getId());
        ValueConditionInput value = new ValueConditionInput().kind(ValueConditionInput.KindEnum.VALUE).topic("temp")
            .is(ValueConditionInput.IsEnum.GREATER_THAN).than(5);
        AlertRuleInput rule = new AlertRuleInput().name("Warm").when(new RuleConditionInput(value));
        System.out.println(alerts.createRule(rule).getWhen().getValueCondition().getKind());
        SilenceInput silence = new SilenceInput().until(OffsetDateTime.parse("2099-12-31T18:00:00Z"));
        System.out.println(alerts.createSilence(silence).getUntil().getYear());
        ShadowActionState state = new ShadowActionState().desired(Map.of("on", false));
        ShadowActionInput action = new ShadowActionInput().kind(ShadowActionInput.KindEnum.SHADOW).patch(new ShadowActionPatch().state(state));
        JobInput job = new JobInput().target(new JobTargetInput().ids(List.of(id))).action(new ActionInput(action));
        System.out.println(new WorkApi(client).createJob(job, null).getJob().getAction().getShadowAction().getKind());
        WebhookInput webhook = new WebhookInput().url("http://127.0.0.1:9/").events(List.of("offline"));
        System.out.println(new WebhooksApi(client).createWebhook(webhook).getEvents().get(0));
        try {
            new RpcApi(client).callFunction(id, "Sys.GetInfo", null, null, null, List.of());
        } catch (ApiException refused) {
            System.out.println(client.getObjectMapper().readValue(refused.getResponseBody(), Problem.class).getReason());
        }
        devices.deleteDevice(id);
        System.out.println("deleted");
    }
}
