package agent

import "slices"

// RequestConfig says how a caller wants to be answered. It is not journaled: Resume knows none and takes any kind of output, and a resume by
// WithResumeFrom goes by the Config of the request that it comes with.
type RequestConfig struct {
	// AcceptedOutputModes are the media types that the caller can take, such as "text/plain", "text/*" or "*/*"; none is all. The engine gets
	// them as engine.Run.OutputModes and answers in one of them, or fails with errdefs.NotAvailable.
	AcceptedOutputModes []string `json:"acceptedOutputModes,omitempty"`
}

// outputModes is a copy for the engine.
func (r *Request) outputModes() []string {
	if r.Config == nil {
		return nil
	}
	return slices.Clone(r.Config.AcceptedOutputModes)
}
