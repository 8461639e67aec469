package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/Masterminds/sprig/v3"

	"wmco/bundle"
	"wmco/templates"
)

// sprigAllowed returns the functions of sprig that depend on nothing but their arguments. Several functions that sprig
// calls hermetic depend on more: shuffle, randInt, keys and values (map order), encryptAES, bcrypt, genCA and others.
func sprigAllowed() []string {
	return []string{
		"join", "lower", "upper", "trim", "trimSuffix", "trimPrefix", "hasPrefix", "hasSuffix", "contains",
		"default", "empty", "indent", "nindent",
	}
}

// templateFunctions returns what templates may call: the allowed part of sprig and the quoting helpers. Every inserted
// value passes a quoting helper of its target language.
func templateFunctions() template.FuncMap {
	funcs := template.FuncMap{"toml": quoteTOML, "json": quoteJSON, "yaml": quoteYAML, "ps": bundle.PowerShell}
	all := sprig.HermeticTxtFuncMap()
	for _, name := range sprigAllowed() {
		funcs[name] = all[name]
	}
	return funcs
}

// quoteTOML writes a TOML basic string. Escapes are those of toml.io/en/v1.0.0#string; a literal string ('...') would
// read better with backslashes but cannot hold a single quote.
func quoteTOML(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("quoting for TOML: not UTF-8")
	}
	if !strings.ContainsAny(s, "'") && strings.Contains(s, `\`) && !strings.ContainsFunc(s, isTOMLControl) {
		return "'" + s + "'", nil
	}
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case isTOMLControl(r):
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String(), nil
}

func isTOMLControl(r rune) bool { return r < 0x20 || r == 0x7f }

// quoteYAML writes a YAML double-quoted scalar: a JSON string with the escapes that only YAML demands, for characters
// that it does not call printable (yaml.org/spec/1.2.2, section 5.1).
func quoteYAML(s string) (string, error) {
	quoted, err := quoteJSON(s)
	if err != nil {
		return "", fmt.Errorf("quoting for YAML: %w", err)
	}
	var out strings.Builder
	for _, r := range quoted {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String(), nil
}

// quoteJSON writes a JSON string.
func quoteJSON(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("quoting for JSON: not UTF-8")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return "", fmt.Errorf("quoting for JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// parseTemplates reads all templates. They are part of the program, so an error is a defect of the program.
func parseTemplates() (*template.Template, error) {
	set, err := template.New("").Option("missingkey=error").Funcs(templateFunctions()).ParseFS(templates.FS, "*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parsing templates: %w", err)
	}
	return set, nil
}

// executeTemplate renders one file from its view. Output with <no value> or <nil> is an error: missingkey=error does
// not catch nil pointers and index.
func executeTemplate(set *template.Template, name string, view any) ([]byte, error) {
	var out bytes.Buffer
	if err := set.ExecuteTemplate(&out, name+".tmpl", view); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	for _, bad := range []string{"<no value>", "<nil>"} {
		if bytes.Contains(out.Bytes(), []byte(bad)) {
			return nil, fmt.Errorf("rendering %s: %s in the output", name, bad)
		}
	}
	return out.Bytes(), nil
}
