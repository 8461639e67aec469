package remote

import (
	"errors"
	"fmt"
	"strings"
)

// Phase is a phase of connecting.
type Phase string

const (
	// PhaseDial is the TCP connection.
	PhaseDial Phase = "connecting to"
	// PhaseHandshake is the banner and the exchange of keys.
	PhaseHandshake Phase = "SSH handshake with"
	// PhaseAuth is the authentication.
	PhaseAuth Phase = "authenticating to"
	// PhaseChannel is the opening of a channel for a command.
	PhaseChannel Phase = "opening a channel to"
)

// UnreachableError means that no connection could be made: refused, no route, timed out, or closed in a phase. It may
// work later.
type UnreachableError struct {
	Target Target
	Phase  Phase
	Err    error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("%s %s: %v", e.Phase, e.Target, e.Err) }

// Unwrap implements errors.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *UnreachableError) Fix() string {
	switch e.Phase {
	case PhaseDial:
		return "check the address, that the host is running, and that its firewall allows TCP port " + e.Target.portNumber()
	case PhaseHandshake, PhaseAuth:
		return "check on the host that the service sshd is running and is an OpenSSH server"
	case PhaseChannel:
		return "check MaxSessions in the host's sshd_config, and its Application log"
	}
	return ""
}

// AuthError means that the host accepts none of the keys.
type AuthError struct {
	Target Target
	// Offered are the keys: their types and fingerprints, such as "ssh-ed25519 SHA256:...".
	Offered []string
	// Allowed are the methods that the server accepts.
	Allowed []string
	Err     error
}

// maxAuthTries is how many keys sshd accepts offers of before it disconnects, by default (MaxAuthTries in
// sshd_config(5)).
const maxAuthTries = 6

func (e *AuthError) Error() string {
	keys := fmt.Sprintf("%d keys", len(e.Offered))
	if len(e.Offered) == 1 {
		keys = "the key " + e.Offered[0]
	}
	return fmt.Sprintf("authenticating to %s: the host refuses the login with %s (it accepts %s)", e.Target, keys,
		joinWords(e.Allowed))
}

// Unwrap implements errors.
func (e *AuthError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *AuthError) Fix() string {
	if n := len(e.Offered); n >= maxAuthTries {
		return fmt.Sprintf("offer only the key that the host accepts: there are %d, and sshd disconnects after %d (MaxAuthTries)", n, maxAuthTries)
	}
	return fmt.Sprintf(`add the public key to C:\ProgramData\ssh\administrators_authorized_keys (for an administrator) or to the authorized_keys of %q, readable by SYSTEM and Administrators only`, e.Target.User)
}

func joinWords(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// HostKeyError means that the host shows another host key than the pinned one: it was reinstalled, or it is another
// host. Nothing was sent to it.
type HostKeyError struct {
	Target Target
	// Pinned and Offered are types and fingerprints of keys, such as "ssh-ed25519 SHA256:...".
	Pinned  []string
	Offered string
	// Unpin is the command line that removes the pinned keys.
	Unpin string
}

func (e *HostKeyError) Error() string {
	return fmt.Sprintf("the host key of %s changed: pinned %s, offered %s", e.Target, joinWords(e.Pinned), e.Offered)
}

// Fix returns what to do.
func (e *HostKeyError) Fix() string {
	return "if the host was reinstalled or its keys were replaced, remove the old key and connect again: " + e.Unpin +
		"; otherwise another host answers at its address"
}

// NoStatus is the status of a command that ended without an exit status.
const NoStatus = -1

// CommandError means that a command failed, with what it wrote to stderr.
type CommandError struct {
	Target Target
	// Command is the command line without the path of the program.
	Command string
	// Status is the exit status, NoStatus if there is none.
	Status int
	// Signal is the signal that ended the command, without "SIG"; only if there is no status.
	Signal string
	// Stderr is the end of what it wrote, for people.
	Stderr string
}

func (e *CommandError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	switch {
	case e.Signal != "":
		how = "killed by signal " + e.Signal
	case e.Status == NoStatus:
		how = "it ended without an exit status"
	}
	text := fmt.Sprintf("running %q on %s: %s", e.Command, e.Target, how)
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Fix returns what to do.
func (e *CommandError) Fix() string {
	if e.Status == NoStatus {
		return "run it again to resume the interrupted run; check whether the host rebooted, or whether something there kills programs"
	}
	return "fix what the command reports, and run it again"
}

// InterruptedError means that the connection was lost while a command ran: how far it came is not known. The next run
// resumes it.
type InterruptedError struct {
	Target  Target
	Command string
	Err     error
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("running %q on %s: the connection was lost: %v", e.Command, e.Target, e.Err)
}

// Unwrap implements errors.
func (e *InterruptedError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *InterruptedError) Fix() string { return "run it again to resume the interrupted run" }

// ProgramError means that the node agent could not be uploaded, or does not work on the host.
type ProgramError struct {
	Target Target
	// Path is the program's on the host.
	Path string
	Err  error
	// Todo is what Fix returns.
	Todo string
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("uploading the node agent to %s as %s: %v", e.Target, e.Path, e.Err)
}

// Unwrap implements errors.
func (e *ProgramError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *ProgramError) Fix() string { return e.Todo }

// NotInstalledError means that the host lacks the node agent, and that nothing was copied there.
type NotInstalledError struct {
	Target Target
	// Path is where the program would be on the host.
	Path string
	// Err is why its files could not be listed, if they could not: the host's shell did not find the program.
	Err error
}

func (e *NotInstalledError) Error() string {
	text := fmt.Sprintf("the node agent %s is not on %s, and nothing was copied there", e.Path, e.Target)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap implements errors.
func (e *NotInstalledError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *NotInstalledError) Fix() string {
	return "let the command copy it with --install, or apply to the host first"
}

// AnswerError means that a command printed something else than an answer of the node agent.
type AnswerError struct {
	Target  Target
	Command string
	// Head is the beginning of what it printed.
	Head string
	Err  error
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("reading the answer of %q on %s, which begins with %q: %v", e.Command, e.Target, e.Head, e.Err)
}

// Unwrap implements errors.
func (e *AnswerError) Unwrap() error { return e.Err }

// Fix returns what to do.
func (e *AnswerError) Fix() string {
	return "remove what the profile or AutoRun of the host's SSH shell prints, or set DefaultShell to cmd.exe"
}

// SuggestFix returns what to do about an error of this package; empty for another error.
func SuggestFix(err error) string {
	var f interface{ Fix() string }
	if errors.As(err, &f) {
		return f.Fix()
	}
	return ""
}

// IsRetryable reports whether the same may work later without anyone changing anything.
func IsRetryable(err error) bool {
	var unreachable *UnreachableError
	var interrupted *InterruptedError
	return errors.As(err, &unreachable) || errors.As(err, &interrupted)
}
