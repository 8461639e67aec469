package machines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// model is an existing MachineSet. The zero value is none.
type model struct {
	ref      bundle.Ref
	set      object
	provider object
	labels   object
}

// The fields of a MachineSet that are read.
const (
	providerField   = "spec.template.spec.providerSpec.value"
	labelsField     = "spec.template.metadata.labels"
	nodeLabelsField = "spec.template.spec.metadata.labels"
	taintsField     = "spec.template.spec.taints"
)

func (m model) exists() bool { return m.provider != nil }

func (m model) isWindows() bool { return m.labels[labelOS] == osWindows }

// isPlainWorker reports whether the machines are ordinary workers: without taints and without another role.
func (m model) isPlainWorker() bool {
	role := m.labels[labelRole]
	return (role == nil || role == roleWorker) &&
		len(m.ownTaints()) == 0 && !slices.ContainsFunc(m.nodeLabels(), func(l string) bool {
		return strings.HasPrefix(l, "node-role.kubernetes.io/")
	})
}

func (m model) ownTaints() []any {
	taints, _ := mustParsePath(taintsField).get(m.set).([]any)
	return taints
}

// nodeLabels returns the labels of the nodes, without the one of workers.
func (m model) nodeLabels() []string {
	var names []string
	labels, _ := mustParsePath(nodeLabelsField).get(m.set).(object)
	for name := range labels {
		if name != labelWorker {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// chooseModel chooses the MachineSet to copy: the named one, or one in the requested zone, a Windows one before others,
// the first by name. Without a model everything must be given by flags. It reports whether the named model was found.
func (d *draft) chooseModel() bool {
	var models []model
	var names []string
	kind := providerOf(d.options.Platform).kind
	for _, source := range d.options.Cluster.Sets {
		m, ok := d.readModel(source)
		if !ok || mustParsePath("kind").text(m.provider) != kind {
			continue
		}
		models = append(models, m)
		names = append(names, m.ref.Name)
	}
	slices.Sort(names)
	if wanted := d.options.Model; wanted != "" {
		i := slices.IndexFunc(models, func(m model) bool { return m.ref.Name == wanted })
		if i < 0 {
			d.refuse(
				reason.ModelMissing, "", fmt.Sprintf("no MachineSet %q with a %s is in the inputs", wanted, kind),
				"choose one of: "+joinNames(names),
			)
			return false
		}
		d.model = models[i]
		return true
	}
	models = slices.DeleteFunc(models, func(m model) bool { return !m.isPlainWorker() && !m.isWindows() })
	if len(models) == 0 {
		return true
	}
	d.model = slices.MinFunc(models, func(a, b model) int {
		return cmp.Or(cmp.Compare(d.rankModel(a), d.rankModel(b)), cmp.Compare(a.ref.Name, b.ref.Name))
	})
	return true
}

// rankModel is lower for a better model.
func (d *draft) rankModel(m model) int {
	rank := 0
	if !d.inZone(m) {
		rank += 2
	}
	if !m.isWindows() {
		rank++
	}
	return rank
}

func (d *draft) readModel(s Source) (model, bool) {
	m := model{ref: s.Ref}
	if err := decodeJSON(s.JSON, &m.set); err != nil {
		d.findings = append(d.findings, bundle.Finding{
			Severity: bundle.SeverityWarning, Reason: reason.ModelInvalid, Object: s.Ref, Message: "cannot be read, so it is not used as a model", Fix: "correct the object, or remove it from the inputs",
		})
		return model{}, false
	}
	m.provider, _ = mustParsePath(providerField).get(m.set).(object)
	m.labels, _ = mustParsePath(labelsField).get(m.set).(object)
	return m, m.exists()
}

func (d *draft) inZone(m model) bool {
	zone := providerOf(d.options.Platform).zone
	return d.options.Zone != "" && zone != "" && mustParsePath(zone).text(m.provider) == d.options.Zone
}

// baseSpec returns the providerSpec to change: the model's, or the values that are the same in every cluster of the
// platform.
func (d *draft) baseSpec() object {
	if d.model.exists() {
		if labels := d.model.nodeLabels(); len(labels) > 0 {
			d.addFinding(
				bundle.SeverityInfo, reason.LabelsLeftOut, nodeLabelsField,
				fmt.Sprintf("%s labels its nodes with %s; this MachineSet does not", d.model.ref, joinNames(labels)),
				"add the labels if the Windows nodes should have them",
			)
		}
		if len(d.model.ownTaints()) > 0 {
			d.addFinding(
				bundle.SeverityInfo, reason.TaintsLeftOut, taintsField,
				fmt.Sprintf(
					"%s taints its nodes; this MachineSet does not (the kubelet itself sets os=Windows:NoSchedule)",
					d.model.ref,
				),
				"add the taints if the Windows nodes should have them",
			)
		}
		copied, _ := deepCopy(d.model.provider).(object)
		return copied
	}
	p := providerOf(d.options.Platform)
	start, _ := deepCopy(p.start).(object)
	start["kind"], start["apiVersion"] = p.kind, p.apiVersion
	return start
}
