package prometheus

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Interval is between two samples.
const Interval = time.Minute

// Samples are series of numbers, as Prometheus keeps them.
type Samples []storage.Series

// ReadSamples reads series, one in a line, in the notation of promtool's tests: the first sample of each is at the
// given time. Empty lines and those that begin with # are skipped.
func ReadSamples(file string, first time.Time) (Samples, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list Samples
	for number, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, values, err := parser.ParseSeriesDesc(line)
		if err != nil {
			return nil, fmt.Errorf("reading line %d of %s: %w", number+1, file, err)
		}
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{first.Add(time.Duration(i) * Interval).UnixMilli(), v.Value})
			}
		}
		list = append(list, storage.NewListSeries(name, samples))
	}
	return list, nil
}

// Querier implements storage.Queryable.
func (s Samples) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		var found []storage.Series
		for _, series := range s {
			if matches(series.Labels(), matchers) {
				found = append(found, series)
			}
		}
		return &selected{list: found}
	}}, nil
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// selected is a storage.SeriesSet.
type selected struct {
	list []storage.Series
	next int
}

func (s *selected) Next() bool                      { s.next++; return s.next <= len(s.list) }
func (s *selected) At() storage.Series              { return s.list[s.next-1] }
func (*selected) Err() error                        { return nil }
func (*selected) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
