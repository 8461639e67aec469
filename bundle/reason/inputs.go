package reason

// Reasons of findings about what is read.
const (
	InputUnreadable  = "InputUnreadable"
	InputTooLarge    = "InputTooLarge"
	InputNotManifest = "InputNotManifest"
	InputUnused      = "InputUnused"
	InputMissing     = "InputMissing"
	DefaultsAssumed  = "DefaultsAssumed"
	DocumentSkipped  = "DocumentSkipped"
	InputInvalid     = "InputInvalid"
	ObjectMalformed  = "ObjectMalformed"
	ObjectTooLarge   = "ObjectTooLarge"
	ListTooDeep      = "ListTooDeep"
	FieldUnknown     = "FieldUnknown"
	UnknownVersion   = "UnknownVersion"
	DuplicateObject  = "DuplicateObject"
	Replaced         = "Replaced"
	KindNotServed    = "KindNotServed"
	Forbidden        = "Forbidden"
	// SigningKeysUnknown is of the command line alone.
	SigningKeysUnknown = "SigningKeysUnknown"
	// ExecutablesUnknown is of the command line alone, too.
	ExecutablesUnknown = "ExecutablesUnknown"
	MachinesRefused    = "MachinesRefused"
	MoreFindings       = "MoreFindings"
	// AcceptedFindingUnused is about an entry of acceptedFindings.
	AcceptedFindingUnused = "AcceptedFindingUnused"
)

func inputReasons() []Entry {
	return []Entry{
		{InputUnreadable, isError, "A path does not exist or cannot be read.", "Check the path and its permissions."},
		{InputTooLarge, isError, "A file is too large to be read.", "Split the file, or remove it from the inputs."},
		{InputNotManifest, isError, "A file that `--from` names holds no YAML or JSON document.", "Give a file or folder of Kubernetes objects, or an unpacked must-gather."},
		{InputUnused, isWarning, "A `--from` holds no object from which Windows nodes are rendered.", "Check the path, and the kinds and names of its objects."},
		{DefaultsAssumed, isInfo, "Optional objects are not in the inputs. The finding names them and what is assumed for each. It is not given for a live cluster.", "Nothing if the cluster lacks them too; otherwise add them with one more `--from`."},
		{DocumentSkipped, isWarning, "A document or an item of a list seems to be meant as a needed object, and is skipped: its kind is written in another case, its apiVersion is of another group, it has no kind, or it is not an object. Or a document in a folder, no template and no binary data, is not valid YAML or JSON.", "Write the apiVersion and the kind that the finding names, correct the document, or remove it from the folder."},
		{InputMissing, errorOrWarning, "An object or a value that every node needs is not in the inputs. It is a warning only for a MachineConfig on platform None.", "Add the object with one more `--from`; the finding names the command that prints it."},
		{InputInvalid, isError, "A field has a value that cannot be used, such as a CIDR that does not parse.", "Correct the field, or the object that it is copied from."},
		{ObjectMalformed, isError, "A needed object is not valid YAML or JSON, or lacks what every object has.", "Correct the document, or print the object again with `oc get -o yaml`."},
		{ObjectTooLarge, isError, "A needed object is larger than a cluster can store.", "Remove it from the inputs, or reduce it."},
		{ListTooDeep, isError, "A list is nested in too many other lists; its items are not read.", "Write the items as separate documents."},
		{FieldUnknown, isWarning, "A field is ignored because it does not exist: in an object of a file that users write by hand (docs/operations.md lists the kinds), or in the Ignition configuration of a MachineConfig.", "Correct the spelling and the place of the field, or the MachineConfig that it comes from."},
		{UnknownVersion, isError, "A needed object has an apiVersion that this program cannot read.", "Give the object in the version that the finding names."},
		{DuplicateObject, isError, "One `--from` holds an object twice, with different contents.", "Remove one. To try out a change, give it as a separate `--from` after the others."},
		{Replaced, isInfo, "A later `--from` replaces an object of an earlier one.", "Nothing, if this is intended."},
		{KindNotServed, isError, "The cluster does not serve a kind that is needed.", "Install what defines the kind, or use the version of this program for the cluster's version."},
		{Forbidden, isError, "The cluster refuses a request of this user.", "Add the RBAC rule that the finding names."},
		{SigningKeysUnknown, isInfo, "The public halves of the keys with which the operator signs what it publishes are not known: its Secret does not exist, or the user may not read it. Bundles bring none, and `wmco apply` refuses to remove those that a host has. Only the command line reports this.", "Give the user the right to get the Secret windows-desired-state-signing in the operator's namespace; without an operator, nothing."},
		{ExecutablesUnknown, isInfo, "Without `--payload`, a node of an operator keeps the executables that the operator has published for it, and those are not known: nothing that the operator has signed is published for the node, or the user may not read it. Only the command line reports this.", "Give the executables with `--payload`, or give the user the right to list Secrets in the operator's namespace."},
		{MachinesRefused, isWarning, "The cluster refuses to list Machines. Their hosts wait, and their nodes keep what is published for them; all others go on. Only the operator reports this.", "Add the RBAC rule that the finding names."},
		{AcceptedFindingUnused, warningOrInfo, "An entry of acceptedFindings accepts nothing. It is an info if the finding is not there any longer, and a warning if there is no such finding in this release, or it is an error, which cannot be accepted.", "Remove the entry, or correct the name of the finding."},
		{MoreFindings, errorOrWarning, "There are more findings about one object than are shown: 20 as text, 200 as JSON. The severity is the highest of theirs.", "Fix those that are shown, and look again."},
	}
}
