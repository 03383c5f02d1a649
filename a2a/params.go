package a2a

import "time"

// A SendRequest is what [OpSend] and [OpStream] take.
type SendRequest struct {
	Tenant        string         `json:"tenant,omitempty"` // of the card's interface; not in 0.3, and so in every request
	Message       Message        `json:"message"`
	Configuration SendConfig     `json:"configuration,omitzero"`
	Metadata      map[string]any `json:"metadata,omitempty"`
}

// A SendConfig says how the client wants its answer.
type SendConfig struct {
	AcceptedOutputModes []string    `json:"acceptedOutputModes,omitempty"` // media types; none: any
	Push                *PushConfig `json:"taskPushNotificationConfig,omitempty"`
	HistoryLength       *int        `json:"historyLength,omitempty"` // messages of history to give at most; nil: no limit, 0: none
	// ReturnImmediately has the answer come once there is a task, not when the task ends or waits. In 0.3 the member is its opposite, blocking,
	// and where a peer leaves that out it is taken as true: servers of 0.3 do.
	ReturnImmediately bool `json:"returnImmediately,omitempty"`
}

// IsZero reports whether nothing is set.
func (c SendConfig) IsZero() bool {
	return len(c.AcceptedOutputModes) == 0 && c.Push == nil && c.HistoryLength == nil && !c.ReturnImmediately
}

// A GetTaskRequest is what [OpGet] takes.
type GetTaskRequest struct {
	Tenant        string `json:"tenant,omitempty"`
	ID            string `json:"id"`
	HistoryLength *int   `json:"historyLength,omitempty"` // as in SendConfig
}

// A ListTasksRequest is what [OpList] takes: filters, all of which hold.
type ListTasksRequest struct {
	Tenant               string
	ContextID            string
	Status               TaskState // "": any
	PageSize             *int      // 1 to 100; nil: 50
	PageToken            string    // of the answer before
	HistoryLength        *int
	StatusTimestampAfter time.Time // at or after it; zero: any
	IncludeArtifacts     bool
}

// A ListTasksResponse is what [OpList] gives.
type ListTasksResponse struct {
	Tasks         []Task `json:"tasks"`
	NextPageToken string `json:"nextPageToken"` // "": there are no more
	PageSize      int    `json:"pageSize"`
	TotalSize     int    `json:"totalSize"` // before paging
}

// A CancelTaskRequest is what [OpCancel] takes.
type CancelTaskRequest struct {
	Tenant   string         `json:"tenant,omitempty"`
	ID       string         `json:"id"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

// A SubscribeRequest is what [OpSubscribe] takes.
type SubscribeRequest struct {
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
}

// A PushConfig says where a server posts a task's events. It is what [OpCreatePush] takes and gives.
type PushConfig struct {
	Tenant         string          `json:"tenant,omitempty"`
	ID             string          `json:"id,omitempty"`     // "" in a request: the server chooses
	TaskID         string          `json:"taskId,omitempty"` // "" in a SendConfig: the task of that message
	URL            string          `json:"url"`
	Token          string          `json:"token,omitempty"` // sent along with each notification, see HeaderNotification
	Authentication *Authentication `json:"authentication,omitempty"`
}

// An Authentication is what a server puts into the Authorization header of a notification.
type Authentication struct {
	Scheme      string `json:"scheme"` // as Bearer. 0.3 has a list: the first one counts
	Credentials string `json:"credentials,omitempty"`
}

// A PushConfigRequest is what [OpGetPush] and [OpDeletePush] take.
type PushConfigRequest struct {
	Tenant string `json:"tenant,omitempty"`
	TaskID string `json:"taskId"`
	ID     string `json:"id"` // 0.3 may leave it out for OpGetPush: it is the task's id then
}

// A ListPushConfigsRequest is what [OpListPush] takes. 0.3 knows no pages.
type ListPushConfigsRequest struct {
	Tenant    string `json:"tenant,omitempty"`
	TaskID    string `json:"taskId"`
	PageSize  int    `json:"pageSize,omitempty"`
	PageToken string `json:"pageToken,omitempty"`
}

// A ListPushConfigsResponse is what [OpListPush] gives.
type ListPushConfigsResponse struct {
	Configs       []PushConfig `json:"configs,omitempty"`
	NextPageToken string       `json:"nextPageToken,omitempty"`
}

// An ExtendedCardRequest is what [OpExtendedCard] takes.
type ExtendedCardRequest struct {
	Tenant string `json:"tenant,omitempty"`
}
