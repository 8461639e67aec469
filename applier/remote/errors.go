package remote

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Phase is how far a connection came.
type Phase string

const (
	// PhaseDial is the TCP connection.
	PhaseDial Phase = "connecting to"
	// PhaseHandshake is the banner and the exchange of keys.
	PhaseHandshake Phase = "the SSH handshake with"
	// PhaseAuth is the authentication.
	PhaseAuth Phase = "authenticating to"
	// PhaseChannel is the opening of a channel for a command.
	PhaseChannel Phase = "opening a channel to"
)

// UnreachableError says that no SSH connection could be made: refused, no route, no answer in time, a dialogue that broke
// off. Trying again later may help.
type UnreachableError struct {
	Target Target
	Phase  Phase
	Err    error
}

func (e *UnreachableError) Error() string { return fmt.Sprintf("%s %s: %v", e.Phase, e.Target, e.Err) }

// Unwrap implements errors.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Fix says what to do.
func (e *UnreachableError) Fix() string {
	switch e.Phase {
	case PhaseDial:
		return "check the address, that the machine runs, and that its firewall lets TCP port " + e.Target.port() + " in"
	case PhaseHandshake, PhaseAuth:
		return "check on the machine that the service sshd runs and is an OpenSSH server"
	case PhaseChannel:
		return "check MaxSessions in the machine's sshd_config, and its Application log"
	}
	return ""
}

// AuthError says that the machine takes none of the keys. Trying again helps only where the key is on its way there.
type AuthError struct {
	Target Target
	// Methods are those that were tried, Allowed those that the server takes.
	Methods, Allowed []string
	// Keys is how many there were to offer.
	Keys int
	Err  error
}

// maxAuthTries is how many keys sshd lets itself be offered before it hangs up, unless it is told otherwise (MaxAuthTries in
// sshd_config(5)).
const maxAuthTries = 6

func (e *AuthError) Error() string {
	return fmt.Sprintf("authenticating to %s: refused (tried %s, the machine takes %s): %v", e.Target, list(e.Methods), list(e.Allowed), e.Err)
}

// Unwrap implements errors.
func (e *AuthError) Unwrap() error { return e.Err }

// Fix says what to do.
func (e *AuthError) Fix() string {
	if e.Keys >= maxAuthTries {
		return fmt.Sprintf("name the one key that the machine knows: there are %d, and sshd hangs up after %d (MaxAuthTries)", e.Keys, maxAuthTries)
	}
	return fmt.Sprintf(`put the public key into C:\ProgramData\ssh\administrators_authorized_keys (an administrator's) or the authorized_keys of %q, readable by SYSTEM and Administrators only`, e.Target.User)
}

func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// HostKeyError says that the machine shows another host key than the pinned one: it was set up anew, or it is not the
// machine. Nothing was sent to it.
type HostKeyError struct {
	Target  Target
	Pinned  []ssh.PublicKey
	Offered ssh.PublicKey
	// Retrust is the step that forgets the pinned keys.
	Retrust string
}

func (e *HostKeyError) Error() string {
	var pinned []string
	for _, key := range e.Pinned {
		pinned = append(pinned, describe(key))
	}
	return fmt.Sprintf("the host key of %s changed: pinned is %s, it shows %s", e.Target, list(pinned), describe(e.Offered))
}

// Fix says what to do.
func (e *HostKeyError) Fix() string {
	return "if the machine was set up anew or its keys were replaced, forget the old key and connect again: " + e.Retrust + "; otherwise something else answers at its address"
}

func describe(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// NoStatus is the status of a command that ended without telling one.
const NoStatus = -1

// CommandError says that a command ended badly, with what it wrote to stderr.
type CommandError struct {
	Target Target
	// Command is the command line without the path of the program.
	Command string
	// Status is the exit status, NoStatus where there is none.
	Status int
	// Signal ended the command, without "SIG"; only where there is no status.
	Signal string
	// Stderr is the end of what it wrote, for people.
	Stderr string
}

func (e *CommandError) Error() string {
	how := fmt.Sprintf("exit status %d", e.Status)
	switch {
	case e.Signal != "":
		how = "ended by signal " + e.Signal
	case e.Status == NoStatus:
		how = "it ended without an exit status"
	}
	text := fmt.Sprintf("running %q on %s: %s", e.Command, e.Target, how)
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Fix says what to do.
func (e *CommandError) Fix() string {
	if e.Status == NoStatus {
		return "run it again: what was begun is taken up; the machine may have restarted, or something there ends programs"
	}
	return "see what it wrote; run it again after the cause is gone"
}

// InterruptedError says that the connection was lost while a command ran: what it did is not known. The next run finds out
// and goes on.
type InterruptedError struct {
	Target  Target
	Command string
	Err     error
	// unheard tells that nothing of an answer had come; mayHaveRun that the machine may have had the command all the same.
	unheard    bool
	mayHaveRun bool
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("running %q on %s: the connection was lost: %v", e.Command, e.Target, e.Err)
}

// Unwrap implements errors.
func (e *InterruptedError) Unwrap() error { return e.Err }

// Fix says what to do.
func (e *InterruptedError) Fix() string { return "run it again: what was begun is taken up" }

// ProgramError says that the node program could not be put onto the machine, or does not work there.
type ProgramError struct {
	Target Target
	// Path is the program's on the machine.
	Path string
	Err  error
	// Todo is what Fix says.
	Todo string
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("putting the node program onto %s as %s: %v", e.Target, e.Path, e.Err)
}

// Unwrap implements errors.
func (e *ProgramError) Unwrap() error { return e.Err }

// Fix says what to do.
func (e *ProgramError) Fix() string { return e.Todo }

// AnswerError says that a command printed something else than the answer of a node program.
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

// Fix says what to do.
func (e *AnswerError) Fix() string {
	return "make the machine's SSH shell print nothing of its own: remove what its profile or AutoRun prints, or set DefaultShell to cmd.exe"
}

// Fix says what to do about an error of this package; empty for another.
func Fix(err error) string {
	var f interface{ Fix() string }
	if errors.As(err, &f) {
		return f.Fix()
	}
	return ""
}

// Retryable tells whether the same may work later without anyone doing anything.
func Retryable(err error) bool {
	var unreachable *UnreachableError
	var interrupted *InterruptedError
	return errors.As(err, &unreachable) || errors.As(err, &interrupted)
}
