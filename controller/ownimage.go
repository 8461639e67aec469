package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
// operator runs in no such Pod, may not read it, or has an image that was loaded into the node without a registry. It
// changes with the Pod alone, so it is read once. An error means that it will be known: without it, every node would lose
// its list of executables, and get it again.
func (o *ownImage) ReadImage(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known || o.Pod == "" {
		return o.image, nil
	}
	var pod corev1.Pod
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Pod}, &pod)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("reading the operator's own Pod: %w", err)
	}
	id := ""
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == managerContainer {
			id = c.ImageID
		}
	}
	runs := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == managerContainer })
	if runs && id == "" {
		return "", errors.New("the kubelet has not reported the image of the operator's own Pod yet")
	}
	if o.known = true; bundle.CheckImageByDigest(id) == nil {
		o.image = id
	}
	o.Log.Info("the operator's own image", "imageID", id, "usable", o.image != "", "error", err)
	return o.image, nil
}
