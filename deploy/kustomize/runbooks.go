package kustomize

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RunbookAnnotation is where an alert names its runbook. In deploy it is the path of the page in the
// repository.
const RunbookAnnotation = "runbook_url"

// ErrRunbooks means that the place of the runbooks is no address that a browser opens.
var ErrRunbooks = errors.New("the runbooks must be below an https URL")

// SetRunbooks makes addresses of the paths of runbooks, below the URL of the sources at a release. Without one they
// stay paths.
func SetRunbooks(objects []*unstructured.Unstructured, sources string) error {
	if sources == "" {
		return nil
	}
	base, err := url.Parse(sources)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return fmt.Errorf("%w, not %q", ErrRunbooks, sources)
	}
	for _, o := range objects {
		if o.GetKind() == "PrometheusRule" {
			setRunbooks(o.Object, strings.TrimSuffix(sources, "/")+"/")
		}
	}
	return nil
}

// setRunbooks changes the annotation wherever a rule has it.
func setRunbooks(value any, base string) {
	switch v := value.(type) {
	case map[string]any:
		if page, ok := v[RunbookAnnotation].(string); ok {
			v[RunbookAnnotation] = base + page
		}
		for _, below := range v {
			setRunbooks(below, base)
		}
	case []any:
		for _, below := range v {
			setRunbooks(below, base)
		}
	}
}
