package main

import (
	"context"
	"fmt"
	"os"
	"time"

	api "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func must[T any](answer T, _ any, err error) T {
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	url, key, id := os.Args[1], os.Args[2], os.Args[3]
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: url}}
	client := api.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), api.ContextAccessToken, key)

	device := api.DeviceInput{Id: &id, Name: *api.NewNullableString(api.PtrString("Lamp"))}
	fmt.Println(must(client.DevicesAPI.CreateDevice(ctx).DeviceInput(device).Execute()).Id)
	desired := api.ShadowStatePatch{Desired: map[string]any{"on": true}}
	patch := api.DevicePatch{Shadow: &api.ShadowPatch{State: &desired}}
	fmt.Println(must(client.DevicesAPI.PatchDevice(ctx, id).DevicePatch(patch).Execute()).Shadow.Version)
	fmt.Println(must(client.DevicesAPI.ReadDevice(ctx, id).Execute()).Shadow.State.Desired["on"])
	fmt.Println(must(client.DevicesAPI.ListDevices(ctx).Filter(id).Execute())[0].Id)
	value := api.NewValueConditionInput("value", "temp", ">", 5)
	rule := api.NewAlertRuleInput("Warm", api.ValueConditionInputAsRuleConditionInput(value))
	fmt.Println(must(client.AlertsAPI.CreateRule(ctx).AlertRuleInput(*rule).Execute()).When.ValueCondition.Kind)
	silence := api.NewSilenceInput(time.Date(2099, 12, 31, 18, 0, 0, 0, time.UTC))
	fmt.Println(must(client.AlertsAPI.CreateSilence(ctx).SilenceInput(*silence).Execute()).Until.Year())
	state := api.ShadowActionState{Desired: map[string]any{"on": false}}
	action := api.NewShadowActionInput("shadow", api.ShadowActionPatch{State: &state})
	job := api.NewJobInput(api.JobTargetInput{Ids: []string{id}}, api.ShadowActionInputAsActionInput(action))
	fmt.Println(must(client.WorkAPI.CreateJob(ctx).JobInput(*job).Execute()).Job.Action.ShadowAction.Kind)
	webhook := api.NewWebhookInput("http://127.0.0.1:9/", []string{"offline"})
	fmt.Println(must(client.WebhooksAPI.CreateWebhook(ctx).WebhookInput(*webhook).Execute()).Events[0])
	_, _, refused := client.RPCAPI.CallFunction(ctx, id, "Sys.GetInfo").Body([]any{}).Execute()
	fmt.Println(refused.(*api.GenericOpenAPIError).Model().(api.Problem).Reason)
	if _, err := client.DevicesAPI.DeleteDevice(ctx, id).Execute(); err != nil {
		panic(err)
	}
	fmt.Println("deleted")
}
