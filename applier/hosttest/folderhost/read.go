package folderhost

import (
	"cmp"
	"context"
	"io"
	"slices"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// Stat implements applier.Reader.
func (h *Host) Stat(ctx context.Context, paths []string) ([]applier.FileInfo, error) {
	infos := make([]applier.FileInfo, 0, len(paths))
	r := newResolver(h.tree)
	defer r.close()
	for _, path := range paths {
		p, err := h.find(ctx, r, path)
		if err != nil {
			return nil, err
		}
		infos = append(infos, p.fileInfo(path))
	}
	return infos, nil
}

// findOne is find for an operation on one path.
func (h *Host) findOne(ctx context.Context, path string) (place, error) {
	r := newResolver(h.tree)
	defer r.close()
	return h.find(ctx, r, path)
}

func (h *Host) find(ctx context.Context, r *resolver, path string) (place, error) {
	if err := ctx.Err(); err != nil {
		return place{}, err
	}
	if err := simulation.CheckPath(path); err != nil {
		return place{}, err
	}
	p, err := r.find(path)
	return p, fileError(path, err)
}

func (p place) fileInfo(path string) applier.FileInfo {
	if p.info == nil {
		return applier.FileInfo{Path: path}
	}
	info := applier.FileInfo{
		Path: path, Kind: p.kind(), Modified: p.info.ModTime(), ID: fileID(p.info), Access: accessOf(p.info),
	}
	if info.Kind == applier.FileRegular {
		info.Size = p.info.Size()
	}
	return info
}

// List implements applier.Reader.
func (h *Host) List(ctx context.Context, directory string) ([]applier.FileInfo, error) {
	r := newResolver(h.tree)
	defer r.close()
	p, err := h.find(ctx, r, directory)
	if err != nil || p.kind() != applier.FileDirectory {
		return nil, err
	}
	names, err := readNames(h.tree, p.rel)
	if err != nil {
		return nil, fileError(directory, err)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(bundle.FoldPath(a), bundle.FoldPath(b)) })
	infos := make([]applier.FileInfo, 0, len(names))
	here := &folder{rel: p.rel, there: true}
	r.folders[bundle.FoldPath(directory)] = here
	for _, name := range names {
		in, err := r.exactly(here, name)
		if err != nil {
			return nil, fileError(directory, err)
		}
		if in.info != nil {
			infos = append(infos, in.fileInfo(directory+`\`+name))
		}
	}
	return infos, nil
}

// Open implements applier.Reader.
func (h *Host) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	p, err := h.findOne(ctx, path)
	if err != nil {
		return nil, err
	}
	switch p.kind() {
	case applier.FileAbsent:
		return nil, &applier.FileError{Path: path, Reason: applier.FileBroken, Err: simulation.ErrFileNotFound}
	case applier.FileDirectory, applier.FileOther:
		return nil, &applier.FileError{Path: path, Reason: applier.FileDenied, Err: simulation.ErrAccessDenied}
	case applier.FileRegular:
	}
	script, err := h.script(ctx)
	if err != nil {
		return nil, err
	}
	if script.Locks(path) {
		return nil, &applier.FileError{Path: path, Reason: applier.FileLocked, Err: simulation.ErrSharingViolation}
	}
	f, err := h.tree.Open(p.rel)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}

func (h *Host) script(ctx context.Context) (simulation.Script, error) {
	var script simulation.Script
	err := h.Look(ctx, func(s *simulation.State) { script = s.Script })
	return script, err
}
