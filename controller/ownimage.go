package controller

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
)

const (
	// podVariable is the variable of the environment with the name of the operator's Pod (deploy/manager).
	podVariable = "POD_NAME"
	// managerContainer is the container that runs the operator.
	managerContainer = "manager"
)

// ownImage is the image that this process runs.
type ownImage struct {
	Live           client.Reader
	Namespace, Pod string
	Log            logr.Logger

	mu    sync.Mutex
	known bool
	image string
}

// ReadImage returns REGISTRY/REPOSITORY@DIGEST, as the kubelet reports the image of the container; empty where the
// operator runs in no Pod, or its image was loaded into the node without a registry. It changes with the Pod alone, so it
// is read once.
func (o *ownImage) ReadImage(ctx context.Context) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known || o.Pod == "" {
		return o.image
	}
	var pod corev1.Pod
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Pod}, &pod); err != nil {
		o.Log.Info("the operator's own image is not known yet, so nodes fetch no executables from it", "error", err)
		return ""
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != managerContainer || c.ImageID == "" {
			continue
		}
		if o.known = true; bundle.CheckImageByDigest(c.ImageID) == nil {
			o.image = c.ImageID
		}
		o.Log.Info("the operator's own image", "imageID", c.ImageID, "usable", o.image != "")
	}
	return o.image
}
