package agent

import (
	"context"

	"wmco/bundle/published"
	"wmco/gateway/places"
)

// lookAtGateway reports the registries whose images the image gateway of the host gets from no place, with an Event if they are others than before.
func (a *Agent) lookAtGateway(ctx context.Context) {
	data, err := a.readFile(places.TroubleFile)(ctx)
	if err != nil {
		return // it is being replaced; the next step reads it
	}
	text, err := places.DescribeTroubles(data, a.Engine.Clock.Now())
	if err != nil {
		text = err.Error()
	}
	if text = published.ShortenTo(text, maxUnknown); text == a.unreachable {
		return
	}
	a.unreachable = text
	if text == "" {
		a.Log.Info("images can be pulled from all registries that go through the image gateway")
		return
	}
	a.Log.Error("images cannot be pulled", "registries", text)
	a.sendEventToNode(ctx, Event{Warning: true, Reason: EventImagesUnreachable, Message: "images cannot be pulled: no mirror or registry answers for " + text})
}
