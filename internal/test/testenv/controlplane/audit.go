package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy logs who asked for what, and the answer. Bodies are not logged: they hold Secrets.
const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"

// Request is a request that the API server has answered. A watch counts when it has begun.
type Request struct {
	// User is who asked. Where a user was impersonated, it is that one: its permissions decide.
	User string
	// Agent is the user agent of the program.
	Agent string
	Verb  string
	// Group, Resource, Namespace and Name are empty where the path is not one of a resource. A Resource may be one like
	// nodes/status.
	Group, Resource, Namespace, Name string
	// Status is that of HTTP.
	Status int
}

// String is for messages of tests.
func (r Request) String() string {
	text := fmt.Sprintf("%s %s %s", r.User, r.Verb, r.Resource)
	if r.Group != "" {
		text += "." + r.Group
	}
	return fmt.Sprintf("%s %s/%s: %d", text, r.Namespace, r.Name, r.Status)
}

// IsWrite reports whether the request changes something, if it is allowed.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Requests returns the audit log, in its order. Options.Audit must have been set.
func (c *ControlPlane) Requests() ([]Request, error) {
	data, err := os.ReadFile(c.folders.audit)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	var list []Request
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if (e.Stage == auditv1.StageResponseStarted) == (e.Verb == "watch") {
			list = append(list, requestOf(e))
		}
	}
	return list, nil
}

func requestOf(e auditv1.Event) Request {
	r := Request{User: e.User.Username, Agent: e.UserAgent, Verb: e.Verb}
	if e.ImpersonatedUser != nil {
		r.User = e.ImpersonatedUser.Username
	}
	if o := e.ObjectRef; o != nil {
		r.Group, r.Resource, r.Namespace, r.Name = o.APIGroup, strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/"), o.Namespace, o.Name
	}
	if e.ResponseStatus != nil {
		r.Status = int(e.ResponseStatus.Code)
	}
	return r
}
