package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Save copies what etcd has to a folder that does not exist. etcd stands still for that moment: the copy is what it
// would find if it had been killed.
func (c *ControlPlane) Save(folder string) error {
	if err := signal(Etcd, syscall.SIGSTOP); err != nil {
		return err
	}
	err := os.CopyFS(folder, os.DirFS(c.folders.data))
	return errors.Join(err, signal(Etcd, syscall.SIGCONT))
}

// Restore stops the API server, gives etcd what was saved, and starts both. As a restore of a cluster does, it makes
// the revision larger than any that was ever seen, and has all before it compacted, so that no client goes on from a
// version that is another one now (etcd.io/docs/v3.6/op-guide/recovery, Restoring with revision bump).
func (c *ControlPlane) Restore(folder string) error {
	server := c.server.ControlPlane.Etcd
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	seen, err := currentRevision(server.URL)
	if err != nil {
		return err
	}
	if err := errors.Join(server.Stop(), os.RemoveAll(c.folders.data), os.CopyFS(c.folders.data, os.DirFS(folder)), server.Start()); err != nil {
		return fmt.Errorf("restoring etcd: %w", err)
	}
	if err := bumpRevision(server.URL, seen); err != nil {
		return fmt.Errorf("raising the revision of etcd: %w", err)
	}
	return c.StartAPIServer()
}

// bumpKey is a key that no API server reads, in base64 as etcd's gateway has it.
const bumpKey = "d21jby10ZXN0ZW52"

// parallelWrites is how many writes are asked for at once.
const parallelWrites = 16

// bumpRevision makes the revision of etcd larger than one, by as many writes, and has what was before it compacted.
func bumpRevision(etcd *url.URL, above int64) error {
	now, err := currentRevision(etcd)
	if err != nil {
		return err
	}
	var writes errgroup.Group
	writes.SetLimit(parallelWrites)
	for ; now <= above; now++ {
		writes.Go(func() error { return ask(etcd, "v3/kv/put", map[string]string{"key": bumpKey, "value": bumpKey}, nil) })
	}
	if err := writes.Wait(); err != nil {
		return err
	}
	return ask(etcd, "v3/kv/compaction", map[string]string{"revision": strconv.FormatInt(above, 10)}, nil)
}

// currentRevision returns that of the last write.
func currentRevision(etcd *url.URL) (int64, error) {
	var answer struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	err := ask(etcd, "v3/kv/range", map[string]string{"key": bumpKey}, &answer)
	return answer.Header.Revision, err
}

// ask asks etcd over its gateway (etcd.io/docs/v3.6/dev-guide/api_grpc_gateway).
func ask(etcd *url.URL, path string, what map[string]string, answer any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	got, err := http.Post(etcd.JoinPath(path).String(), "application/json", bytes.NewReader(body)) //nolint:gosec,noctx // of a test, on loopback
	if err != nil {
		return err
	}
	defer got.Body.Close() //nolint:errcheck // it is read
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, got.Status)
	}
	if answer == nil {
		answer = &struct{}{}
	}
	return json.NewDecoder(got.Body).Decode(answer)
}
