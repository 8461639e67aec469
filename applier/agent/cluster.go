package agent

import (
	"context"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Node is what the agent reads of its own Node.
type Node struct {
	// UID is that of the object: a Node that was deleted and registered again has another one.
	UID string
	// Desired and Report are the texts of the annotations; empty where there is none.
	Desired, Report, Retry string
	// Fetch is the payload that the agent may fetch.
	Fetch bundle.Digest
	// Paused is true for a node that an administrator keeps as it is.
	Paused bool
	// read is when the agent got it, since the boot of the host.
	read time.Duration
}

// Cluster is what the agent asks of the API server.
type Cluster interface { //nolint:interfacebloat // all that an agent does in a cluster, seen at one place
	// Watch calls changed with the Node, first and whenever it may have changed, until the context ends.
	Watch(ctx context.Context, changed func(Node))
	// Part returns the content of one of the layers' Secrets. Where the Secret does not exist, or may not be read yet,
	// the error is ErrNotPublished.
	Part(ctx context.Context, namespace, name string) ([]byte, error)
	// Report writes the annotation and the condition of the Node in one request.
	Report(ctx context.Context, s Status) error
	// Heartbeat returns the time of the kubelet's last sign of life, zero if the Node is not Ready.
	Heartbeat(ctx context.Context) (time.Time, error)
	// Event sends an Event about the Node.
	Event(ctx context.Context, e Event) error
	// OwnKubeconfig returns a kubeconfig with which another process reaches the API server as this node. It names no files and
	// holds a private key.
	OwnKubeconfig() ([]byte, error)
	Certificates
}

// Status is what a report writes.
type Status struct {
	// Text is the encoded report.
	Text string
	// State is the reason of the condition, Message what people read there.
	State   published.State
	Message string
	// Time is the heartbeat. Changed is when the condition last changed its status, or became True for another bundle.
	Time, Changed time.Time
}

// Event is an Event of the core API.
type Event struct {
	Warning         bool
	Reason, Message string
	Time            time.Time
}

// Reasons of events.
const (
	EventApplied    = "BundleApplied"
	EventRolledBack = "BundleRolledBack"
	EventFailed     = "BundleFailed"
	EventRefused    = "BundleRefused"
	EventRepaired   = "DriftRepaired"
	EventCrashed    = "ServiceCrashed"
	EventBooting    = "HostBooting"
	EventBootFailed = "HostBootFailed"
	// EventImageNotPulled is sent when several pulls of a pinned image have failed.
	EventImageNotPulled = "PinnedImageNotPulled"
	// EventNotFetched is sent when several tries to fetch executables have failed.
	EventNotFetched = published.ReasonNotFetched
	// EventNetworkRestarted is sent when services were restarted because the Host Network Service of Windows had crashed,
	// EventNetworkUnstable when it crashes more often than the agent restarts the dependent services.
	EventNetworkRestarted = "HostNetworkRestarted"
	EventNetworkUnstable  = "HostNetworkUnstable"
	// EventSSHStarted is sent when the agent has started a stopped OpenSSH server, EventSSHStopped when it cannot.
	EventSSHStarted = "SSHServerStarted"
	EventSSHStopped = "SSHServerStopped"
	// EventImagesUnreachable names registries for which the image gateway reaches neither a mirror nor the registry.
	EventImagesUnreachable = "ImagesUnreachable"
)
