package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// APIServer answers what the node agent asks: its Node, the Node's Lease, which is always fresh, and the Secrets of the
// published bundle. It keeps the annotations and Events that the agent writes. Everything else does not exist.
type APIServer struct {
	Node string
	// Now is the time of the Lease and of the condition Ready.
	Now func() time.Time

	mu          sync.Mutex
	annotations map[string]string
	events      []corev1.Event
	version     int
	changed     chan struct{}
	// secrets is the folder with the parts of layers, by the names of their Secrets.
	secrets string
}

// Publish tells the agent of a bundle that internal/test/winsteps/cmd/inputs has written.
func (s *APIServer) Publish(folder string) (published.Desired, error) {
	text, err := os.ReadFile(filepath.Join(folder, FileDesired))
	if err != nil {
		return published.Desired{}, err
	}
	d, err := published.DecodeDesired(string(text))
	if err != nil {
		return d, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets = folder
	s.annotateNode(map[string]string{published.DesiredAnnotation: string(text)})
	return d, nil
}

// FileDesired is the annotation of a published bundle, in the folder that also has the parts of its layers.
const FileDesired = "desired.json"

// annotateNode changes annotations and ends the wait of the watches. The caller has the lock.
func (s *APIServer) annotateNode(changes map[string]string) {
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	for key, value := range changes {
		s.annotations[key] = value
	}
	s.version++
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// Report returns what the agent last wrote, and whether that can be read.
func (s *APIServer) Report() (published.Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := published.DecodeReport(s.annotations[published.ReportAnnotation])
	return r, err == nil
}

// Events returns the Events that the agent wrote.
func (s *APIServer) Events() []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]corev1.Event(nil), s.events...)
}

// metadata returns the Node's, and a channel that is closed when it is written.
func (s *APIServer) metadata() (metav1.PartialObjectMetadata, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: s.meta(),
	}, s.changed
}

func (s *APIServer) meta() metav1.ObjectMeta {
	copied := make(map[string]string, len(s.annotations))
	for key, value := range s.annotations {
		copied[key] = value
	}
	return metav1.ObjectMeta{Name: s.Node, ResourceVersion: strconv.Itoa(s.version), Annotations: copied}
}

// ServeHTTP implements http.Handler.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch node := "/api/v1/nodes/" + s.Node; {
	case r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") != "":
		s.serveWatch(w, r)
	case r.URL.Path == "/api/v1/nodes":
		m, _ := s.metadata()
		writeJSON(w, http.StatusOK, metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"},
			ListMeta: metav1.ListMeta{ResourceVersion: m.ResourceVersion}, Items: []metav1.PartialObjectMetadata{m},
		})
	case r.URL.Path == node+"/status" && r.Method == http.MethodPatch:
		s.servePatch(w, r)
	case r.URL.Path == node:
		s.mu.Lock()
		n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: s.meta()}
		s.mu.Unlock()
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(s.Now())},
		}
		writeJSON(w, http.StatusOK, n)
	case strings.HasSuffix(r.URL.Path, "/leases/"+s.Node):
		now := metav1.NewMicroTime(s.Now())
		writeJSON(w, http.StatusOK, coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: s.Node}, Spec: coordinationv1.LeaseSpec{RenewTime: &now},
		})
	case strings.HasSuffix(r.URL.Path, "/secrets/"+name):
		s.serveSecret(w, name)
	case strings.HasSuffix(r.URL.Path, "/events") && r.Method == http.MethodPost:
		s.keepEvent(w, r)
	default:
		answerMissing(w, r.URL.Path)
	}
}

// serveWatch sends the Node, and again whenever it is written, until the client ends it or its time is over.
func (s *APIServer) serveWatch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	limit := make(<-chan time.Time)
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil {
		limit = time.After(time.Duration(seconds) * time.Second)
	}
	out := json.NewEncoder(w)
	send := func(kind string, m metav1.PartialObjectMetadata) bool {
		err := out.Encode(map[string]any{"type": kind, "object": m})
		return err == nil && http.NewResponseController(w).Flush() == nil
	}
	m, changed := s.metadata()
	if !send("ADDED", m) {
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		end := m
		end.ObjectMeta = metav1.ObjectMeta{ResourceVersion: m.ResourceVersion, Annotations: map[string]string{
			metav1.InitialEventsAnnotationKey: "true",
		}}
		if !send("BOOKMARK", end) {
			return
		}
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-limit:
			return
		case <-changed:
			if m, changed = s.metadata(); !send("MODIFIED", m) {
				return
			}
		}
	}
}

func (s *APIServer) servePatch(w http.ResponseWriter, r *http.Request) {
	var m metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.annotateNode(m.Annotations)
	s.mu.Unlock()
	writeJSON(w, http.StatusOK, struct{}{})
}

func (s *APIServer) serveSecret(w http.ResponseWriter, name string) {
	s.mu.Lock()
	folder := s.secrets
	s.mu.Unlock()
	data, err := os.ReadFile(filepath.Join(folder, filepath.Base(name)))
	if folder == "" || err != nil {
		answerMissing(w, "Secret "+name)
		return
	}
	writeJSON(w, http.StatusOK, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{published.SecretKey: data}})
}

func (s *APIServer) keepEvent(w http.ResponseWriter, r *http.Request) {
	var e corev1.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	writeJSON(w, http.StatusCreated, e)
}

func answerMissing(w http.ResponseWriter, what string) {
	writeJSON(w, http.StatusNotFound, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf("%q does not exist here", what),
	})
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // whoever asked may have gone
}
