package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	"golang.org/x/time/rate"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/payload/sources"
	"wmco/payload/store"
)

// Single fetches one executable after the other, as a host needs them. It keeps what came of a layer before a registry failed, for the next call. It is
// not for use by several goroutines at once.
type Single struct {
	Client *registry.Client

	// image is the one that manifest is of.
	image    places.Image
	manifest manifest
	// layer is the one that have is of.
	layer digest.Digest
	have  inMemory
	// limit keeps to rate, in bytes per second.
	limit *rate.Limiter
	rate  int64
}

// FetchStored returns the stored form of an executable, from the first place that has it. It is held in memory. The error names each place with what it
// answered, without secrets.
func (s *Single) FetchStored(ctx context.Context, l sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	if s.rate != l.Rate {
		s.rate, s.limit = l.Rate, newLimiter(l.Rate)
	}
	var refused []error
	for _, p := range l.Places {
		data, err := s.fetchFrom(ctx, repository{s.Client, p, s.limit}, l, x, report)
		if err == nil {
			s.layer, s.have = "", inMemory{}
			return data, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		refused = append(refused, fmt.Errorf("%s: %w", p.Name(), err))
	}
	return nil, joinErrors(refused)
}

// joinErrors joins errors in one line.
func joinErrors(list []error) error {
	if len(list) == 0 {
		return errors.New("no place may be asked for the operator's image")
	}
	var texts []string
	for _, err := range list {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

func (s *Single) fetchFrom(ctx context.Context, from repository, l sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	if s.image != l.Image {
		m, err := from.readImage(ctx, l.Image.Reference)
		if err != nil {
			return nil, err
		}
		s.image, s.manifest = l.Image, m
	}
	layer, err := s.manifest.layerOf(x)
	if err != nil {
		return nil, err
	}
	if s.layer != layer.Digest {
		s.layer, s.have = layer.Digest, inMemory{make([]byte, 0, layer.Size)}
	}
	if err := from.fetchLayer(ctx, layer, &s.have, report); err != nil {
		return nil, err
	}
	data, err := readStored(layer, &s.have, x)
	if err != nil {
		s.layer, s.have = "", inMemory{}
	}
	return data, err
}

// besides is how many bytes a layer may have besides its executable: a bill of materials.
const besides = 4 << 20

// layerOf returns the layer of an executable.
func (m manifest) layerOf(x sources.Executable) (descriptor, error) {
	for _, l := range m.Layers {
		if l.Annotations[LayerAnnotation] != store.FileOf(x.Name) {
			continue
		}
		if l.Size > x.Stored.Size+x.Stored.Size/64+besides { // what is compressed grows a little
			return descriptor{}, fmt.Errorf("the layer of %s has %d bytes, more than the %d of the executable", x.Name, l.Size, x.Stored.Size)
		}
		return l, nil
	}
	return descriptor{}, fmt.Errorf("the image has no layer that is marked as that of %s: a copy of it has lost its annotations", x.Name)
}

// readStored returns the file of an executable in a layer.
func readStored(l descriptor, have partial, x sources.Executable) ([]byte, error) {
	var data []byte
	err := unpackLayer(l, have, func(base string, content io.Reader) (err error) {
		if base == store.FileOf(x.Name) {
			data = make([]byte, x.Stored.Size)
			_, err = io.ReadFull(content, data)
		}
		return err
	})
	if err == nil && bundle.Of(data) != x.Stored.Digest {
		err = fmt.Errorf("the layer of %s has another executable than the bundle names", x.Name)
	}
	return data, err
}

const (
	// chunk is how many bytes are read at once where the rate is limited, at most.
	chunk = 64 << 10
	// burstsPerSecond is the part of a second whose bytes may come at once: a busy host wakes a reader that late.
	burstsPerSecond = 10
)

// newLimiter returns what keeps to a rate in bytes per second; nil without one.
func newLimiter(bytesPerSecond int64) *rate.Limiter {
	if bytesPerSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bytesPerSecond), int(max(chunk, bytesPerSecond/burstsPerSecond)))
}

// slowed is a reader at the rate of a limiter, which may be nil.
type slowed struct {
	ctx   context.Context //nolint:containedctx // io.Reader has no other way to carry it
	from  io.Reader
	limit *rate.Limiter
}

// Read implements io.Reader.
func (s slowed) Read(p []byte) (int, error) {
	if s.limit == nil {
		return s.from.Read(p)
	}
	n, err := s.from.Read(p[:min(len(p), chunk)])
	if n > 0 {
		if stopped := s.limit.WaitN(s.ctx, n); stopped != nil {
			return n, stopped
		}
	}
	return n, err
}
