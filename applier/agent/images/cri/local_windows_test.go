package cri

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	images "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	keeper "wmco/applier/agent/images"
	"wmco/bundle"
)

// pipeServer answers at containerd's pipe as containerd does, as far as the agent asks it.
type pipeServer struct {
	runtime.UnimplementedImageServiceServer
	images.UnimplementedImagesServer

	mu sync.Mutex
	// labels are those of the images that are there, by name.
	labels map[string]map[string]string
	auths  []*runtime.AuthConfig
}

// ImageStatus implements the CRI.
func (s *pipeServer) ImageStatus(_ context.Context, r *runtime.ImageStatusRequest) (*runtime.ImageStatusResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.GetImage().GetImage()
	labels, ok := s.labels[name]
	if !ok {
		return &runtime.ImageStatusResponse{}, nil
	}
	return &runtime.ImageStatusResponse{Image: &runtime.Image{Id: "sha256:1", RepoDigests: []string{name}, Pinned: labels[pinnedLabel] == pinnedValue}}, nil
}

// PullImage implements the CRI.
func (s *pipeServer) PullImage(_ context.Context, r *runtime.PullImageRequest) (*runtime.PullImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auths = append(s.auths, r.GetAuth())
	if strings.Contains(r.GetImage().GetImage(), "/none@") {
		return nil, status.Error(codes.NotFound, "not found")
	}
	s.labels[r.GetImage().GetImage()] = map[string]string{}
	return &runtime.PullImageResponse{ImageRef: "sha256:1"}, nil
}

// Get implements containerd's images service.
func (s *pipeServer) Get(ctx context.Context, r *images.GetImageRequest) (*images.GetImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	labels, ok := s.labels[r.GetName()]
	if got, _ := metadata.FromIncomingContext(ctx); !ok || strings.Join(got["containerd-namespace"], "") != namespace {
		return nil, status.Error(codes.NotFound, "not found")
	}
	return &images.GetImageResponse{Image: &images.Image{Name: r.GetName(), Labels: labels, Target: &types.Descriptor{Digest: "sha256:1"}}}, nil
}

// List implements containerd's images service, without its filters.
func (s *pipeServer) List(context.Context, *images.ListImagesRequest) (*images.ListImagesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &images.ListImagesResponse{}
	for name, labels := range s.labels {
		answer.Images = append(answer.Images, &images.Image{Name: name, Labels: labels})
	}
	return answer, nil
}

// Update implements containerd's images service, for labels.
func (s *pipeServer) Update(_ context.Context, r *images.UpdateImageRequest) (*images.UpdateImageResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, value := range r.GetImage().GetLabels() {
		s.labels[r.GetImage().GetName()][key] = value
	}
	return &images.UpdateImageResponse{Image: r.GetImage()}, nil
}

// steadyClock is that of this computer.
type steadyClock struct{ begun time.Time }

func (c steadyClock) SinceBoot() time.Duration { return time.Since(c.begun) }
func (steadyClock) After(d time.Duration) <-chan time.Time {
	return time.After(min(d, 50*time.Millisecond))
}

// TestImagesArePulledOverThePipe by what the node agent runs, with gRPC over containerd's named pipe and the disk that Windows tells of. A pipe that
// closes and is opened again is dialed again.
func TestImagesArePulledOverThePipe(t *testing.T) {
	s := &pipeServer{labels: map[string]map[string]string{}}
	serve := func() *grpc.Server {
		t.Helper()
		listener, err := winio.ListenPipe(pipe, &winio.PipeConfig{SecurityDescriptor: "O:BAD:(A;;GA;;;WD)"}) // as that of a service of Windows, and of any user of Wine
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		runtime.RegisterImageServiceServer(server, s)
		images.RegisterImagesServer(server, s)
		go func() { _ = server.Serve(listener) }() // it ends with Stop
		return server
	}
	local, err := NewLocal()
	if err != nil {
		t.Fatal(err)
	}
	disk, err := local.DiskSpace(t.Context())
	if err != nil || disk.Size < 1<<30 || disk.Free == 0 || disk.Free > disk.Size {
		t.Errorf("drive C: has %d bytes, of which %d are free (%v)", disk.Size, disk.Free, err)
	}
	name, none := "a.example.com/x@sha256:"+strings.Repeat("ab", 32), "a.example.com/none@sha256:"+strings.Repeat("cd", 32)
	if _, err := local.FindImage(t.Context(), name); !errors.Is(err, keeper.ErrAway) {
		t.Skip("containerd of this host has the pipe:", err)
	}
	list, err := bundle.EncodePinnedImages([]string{none, name})
	if err != nil {
		t.Fatal(err)
	}
	auth := bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte("user:word")))
	credentials, err := bundle.EncodePinnedCredentials([]bundle.PinnedCredential{{Auth: auth, Images: []string{name}}})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper.Keeper{
		Runtime: roomy{local}, Clock: steadyClock{time.Now()}, Log: slog.New(slog.DiscardHandler), Changed: func() {}, Warn: func(context.Context, string) {},
		Jitter: func(d time.Duration) time.Duration { return d },
		List:   func(context.Context) ([]byte, error) { return list, nil }, Credentials: func(context.Context) ([]byte, error) { return credentials, nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	defer running.Wait()
	defer stop()
	eventually := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waiting for %s: %+v", what, k.Progress())
			}
		}
	}
	server := serve()
	defer func() { server.Stop() }()
	pinned := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.labels[name][pinnedLabel] == pinnedValue && s.labels[name][markLabel] == name
	}
	eventually("the pinned image", pinned)
	eventually("what is said of the other one", func() bool {
		return k.Progress().Present == 1 && strings.Contains(k.Progress().Message, "the registry has no such image, or none for this Windows")
	})
	server.Stop() // containerd restarts, and has lost the image
	s.mu.Lock()
	delete(s.labels, name)
	for _, a := range s.auths {
		if a != nil && (a.GetAuth() != auth.Reveal() || a.GetServerAddress() != "https://a.example.com") {
			t.Errorf("containerd was given other credentials, for %s", a.GetServerAddress())
		}
	}
	given := len(s.auths)
	s.mu.Unlock()
	if given < 2 {
		t.Errorf("%d pulls", given)
	}
	server = serve()
	eventually("an answer over the new pipe", func() bool {
		got, err := local.FindImage(t.Context(), name)
		return err == nil && !got.Present
	})
}

// roomy is a host with room for images, whatever disk the test has.
type roomy struct{ *Containerd }

func (roomy) DiskSpace(context.Context) (keeper.Disk, error) {
	return keeper.Disk{Size: 100 << 30, Free: 90 << 30}, nil
}
