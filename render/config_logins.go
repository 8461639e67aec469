package render

import "wmco/bundle"

// KeysMode is how the operator treats hosts that refuse its key, and whose node agent cannot write it.
type KeysMode string

const (
	// KeysRotate lists them. Node agents write the key of all others.
	KeysRotate KeysMode = "Rotate"
	// KeysReplace also deletes their Machines, one at a time for each MachineSet.
	KeysReplace KeysMode = "Replace"
)

// SSHMode is when the operator logs in to hosts that have joined.
type SSHMode string

const (
	// SSHJoinAndRescue logs in where a node agent cannot do the work.
	SSHJoinAndRescue SSHMode = "JoinAndRescue"
	// SSHAlways also logs in to confirm each new key.
	SSHAlways SSHMode = "Always"
)

// ConfirmsKeys reports whether the operator logs in to each host to confirm that it accepts a new key. Only a login shows
// that a host refuses it, which KeysReplace asks for.
func (s Settings) ConfirmsKeys() bool { return s.SSH == SSHAlways || s.Keys == KeysReplace }

// checkLogins checks the settings about logins to hosts.
func (s Settings) checkLogins() (findings bundle.Findings) {
	if s.Keys != KeysRotate && s.Keys != KeysReplace {
		findings = append(findings, invalidSetting("keys", "%q is neither Rotate nor Replace", s.Keys))
	}
	if s.SSH != SSHJoinAndRescue && s.SSH != SSHAlways {
		findings = append(findings, invalidSetting("ssh", "%q is neither JoinAndRescue nor Always", s.SSH))
	}
	return findings
}
