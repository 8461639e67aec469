package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"wmco/bundle/reason"
)

// applySet applies the user's --set flags, after every other change.
func (d *draft) applySet() {
	for _, s := range d.options.Set {
		name, text, ok := strings.Cut(s, "=")
		field := providerField + "." + name
		if !ok {
			d.refuse(reason.SetInvalid, "", fmt.Sprintf("--set %q has no value", s), "write --set PATH=VALUE")
			continue
		}
		p, err := parsePath(name)
		if err != nil {
			d.refuse(reason.SetInvalid, "", "--set: "+err.Error(), "write --set PATH=VALUE")
			continue
		}
		value, err := d.parseValue(p, text)
		if err != nil {
			d.refuse(
				reason.SetInvalid, field, "does not accept this value: "+err.Error(),
				"see the fields of "+providerOf(d.options.Platform).kind+" in the documentation of the Machine API",
			)
			continue
		}
		changed, err := p.put(d.provider, value)
		if err != nil {
			d.refuse(reason.SetInvalid, field, "cannot be set: "+err.Error(), "set the whole value that contains it")
			continue
		}
		d.provider, _ = changed.(object)
	}
}

// isSet reports whether a --set changes the value at the path, or a part of it.
func (d *draft) isSet(p path) bool {
	for _, s := range d.options.Set {
		name, _, _ := strings.Cut(s, "=")
		if q, err := parsePath(name); err == nil && (q.isWithin(p) || p.isWithin(q)) {
			return true
		}
	}
	return false
}

// parseValue reads a value as YAML, or as plain text if the field is a text. A field that the platform's type does not
// have is refused, because the Machine API would ignore it.
func (d *draft) parseValue(p path, text string) (any, error) {
	var value any
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = decodeJSON(data, &value)
	}
	if err == nil {
		err = d.checkType(p, value)
	}
	if err != nil && d.checkType(p, text) == nil {
		return text, nil
	}
	return value, err
}

// checkType checks one value at a path against the platform's type.
func (d *draft) checkType(p path, value any) error {
	first := make(path, len(p))
	for i, part := range p {
		first[i] = part
		if _, isIndex := part.(int); isIndex {
			first[i] = 0
		}
	}
	alone, err := first.put(nil, value)
	if err != nil {
		return err
	}
	data, err := json.Marshal(alone)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(providerOf(d.options.Platform).value())
}
