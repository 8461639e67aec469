package reason

// Reasons of findings about the executables of --payload.
const (
	PayloadInvalid    = "PayloadInvalid"
	PayloadIncomplete = "PayloadIncomplete"
	// ExecutablesNotPullable is about the operator's image, from which nodes fetch executables.
	ExecutablesNotPullable = "ExecutablesNotPullable"
)

func executableReasons() []Entry {
	return []Entry{
		{PayloadInvalid, isError, "The folder of `--payload` is not as the build wrote it: a file is missing, changed or unknown, or it belongs to another `wmco` version.", "Build it again: `make payload`."},
		{PayloadIncomplete, isError, "The payload lacks an executable that nodes on this platform need.", "Build the missing executable: `make payload PAYLOAD=NAME`, with the name in the message."},
		{ExecutablesNotPullable, isWarning, "Image/cluster or a mirror set forbids the operator's image, so nodes cannot fetch executables.", "Allow or mirror the image, or set `executables.from: SSH` in windows-machine-config."},
	}
}
