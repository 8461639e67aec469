package reason

// Reasons of findings about reading the inputs.
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
		{InputTooLarge, isError, "A file is too large.", "Split the file, or remove it from the inputs."},
		{InputNotManifest, isError, "A file of `--from` has no YAML or JSON document.", "Give a file or folder of Kubernetes objects, or an unpacked must-gather."},
		{InputUnused, isWarning, "A `--from` has no object from which Windows nodes are rendered.", "Check the path, and the kinds and names of its objects. Leave out sources of other objects."},
		{DefaultsAssumed, isInfo, "Optional objects are not in the inputs. The finding lists the defaults. Not reported for a live cluster.", "None, or add them with another `--from`."},
		{DocumentSkipped, isWarning, "A document or list item is skipped: its kind or apiVersion is misspelt or missing, or it is not valid YAML or JSON.", "Write the apiVersion and kind in the finding, or remove the document."},
		{InputMissing, errorOrWarning, "An object or value that every node needs is not in the inputs. Warning only for a MachineConfig on platform None.", fixInFinding},
		{InputInvalid, isError, "A field has an invalid value, such as a wrong CIDR.", "Correct the field, or the object that it is copied from."},
		{ObjectMalformed, isError, "A needed object is not valid YAML or JSON, or is incomplete.", "Correct the document, or print the object again with `oc get -o yaml`."},
		{ObjectTooLarge, isError, "A needed object is larger than a cluster can store.", "Remove it from the inputs, or reduce it."},
		{ListTooDeep, isError, "A list is nested in too many lists, and is not read.", "Write its items as separate documents."},
		{FieldUnknown, isWarning, "A field does not exist and is ignored: in a [file that users write](command-line.md#inputs-from-files-and-must-gathers), or in the Ignition configuration of a MachineConfig.", "Correct its spelling and place, or the MachineConfig."},
		{UnknownVersion, isError, "A needed object has an apiVersion that this program cannot read.", fixInFinding},
		{DuplicateObject, isError, "One `--from` has an object twice, with different contents.", "Remove one. To try a change, give it in a separate `--from` after the others."},
		{Replaced, isInfo, "A later `--from` replaces an object of an earlier one.", "None, if this is intended."},
		{KindNotServed, isError, "The cluster does not serve a needed kind.", "Install its definition, or use the version of this program for the cluster."},
		{Forbidden, isError, "The cluster refuses a request of this user.", fixInFinding},
		{SigningKeysUnknown, isInfo, "The operator's Secret windows-desired-state-signing does not exist, or you may not read it. Bundles then lack signing keys, and `wmco apply` refuses to remove a host's." + byCommandLine, "None without an operator. Otherwise get the right to read the Secret."},
		{ExecutablesUnknown, isInfo, "Without `--payload`, nodes keep their published executables. These cannot be read: nothing signed is published, or you lack the permission." + byCommandLine, "Give `--payload`, or get the right to list Secrets in the operator's namespace."},
		{MachinesRefused, isWarning, "The cluster refuses to list Machines. Their hosts wait, and their nodes keep the published bundle." + byOperator, fixInFinding},
		{AcceptedFindingUnused, warningOrInfo, "An entry of acceptedFindings accepts nothing. Info if the finding no longer occurs; warning if it is an error, or unknown to this release.", "Remove the entry, or correct its name."},
		{MoreFindings, errorOrWarning, "There are more findings about one object than are shown (20 as text, 200 as JSON). The severity is their highest.", "Fix those, and run the command again."},
	}
}
