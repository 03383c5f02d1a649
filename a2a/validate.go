package a2a

import (
	"errors"
	"fmt"
)

// validate says what the protocol requires and value lacks. Of what an agent says, that a list is empty is let pass.
func validate(value any) error {
	switch x := value.(type) {
	case *Message:
		return x.valid()
	case *Task:
		return x.valid()
	case *Artifact:
		return x.valid()
	case *StatusUpdate:
		return x.valid()
	case *ArtifactUpdate:
		return x.valid()
	case *Event:
		return x.valid()
	case *AgentCard:
		return x.valid()
	case *SendRequest:
		return x.valid()
	case *GetTaskRequest:
		return first(need("id", x.ID), length(x.HistoryLength))
	case *ListTasksRequest:
		if x.PageSize != nil && (*x.PageSize < 1 || *x.PageSize > 100) {
			return fmt.Errorf("pageSize is 1 to 100, not %d", *x.PageSize)
		}
		return length(x.HistoryLength)
	case *ListTasksResponse:
		for i := range x.Tasks {
			if err := x.Tasks[i].valid(); err != nil {
				return fmt.Errorf("tasks[%d].%w", i, err)
			}
		}
	case *CancelTaskRequest:
		return need("id", x.ID)
	case *SubscribeRequest:
		return need("id", x.ID)
	case *PushConfig:
		return first(need("taskId", x.TaskID), need("url", x.URL))
	case *PushConfigRequest:
		return first(need("taskId", x.TaskID), need("id", x.ID))
	case *ListPushConfigsRequest:
		if x.PageSize < 0 {
			return errors.New("pageSize is not below 0")
		}
		return need("taskId", x.TaskID)
	case *ListPushConfigsResponse, *ExtendedCardRequest:
	default:
		return fmt.Errorf("%T is no type of the protocol", value)
	}
	return nil
}

func need(name, value string) error {
	if value == "" {
		return errors.New(name + " is missing")
	}
	return nil
}

func length(n *int) error {
	if n != nil && *n < 0 {
		return fmt.Errorf("historyLength is not below 0: %d", *n)
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Message) valid() error {
	return first(need("messageId", m.ID), need("role", string(m.Role)))
}

func (t *Task) valid() error {
	if err := first(need("id", t.ID), t.Status.valid()); err != nil {
		return err
	}
	for i := range t.Artifacts {
		if err := t.Artifacts[i].valid(); err != nil {
			return fmt.Errorf("artifacts[%d].%w", i, err)
		}
	}
	for i := range t.History {
		if err := t.History[i].valid(); err != nil {
			return fmt.Errorf("history[%d].%w", i, err)
		}
	}
	return nil
}

func (s *TaskStatus) valid() error {
	if err := need("status", string(s.State)); err != nil {
		return err
	}
	if s.Message != nil {
		if err := s.Message.valid(); err != nil {
			return fmt.Errorf("status.message.%w", err)
		}
	}
	return nil
}

func (a *Artifact) valid() error { return need("artifactId", a.ID) }

func (u *StatusUpdate) valid() error { return first(need("taskId", u.TaskID), u.Status.valid()) }

func (u *ArtifactUpdate) valid() error {
	if err := need("taskId", u.TaskID); err != nil {
		return err
	}
	if err := u.Artifact.valid(); err != nil {
		return fmt.Errorf("artifact.%w", err)
	}
	return nil
}

func (e *Event) valid() error {
	var n int
	var err error
	if e.Task != nil {
		n, err = n+1, e.Task.valid()
	}
	if e.Message != nil {
		n, err = n+1, first(err, e.Message.valid())
	}
	if e.Status != nil {
		n, err = n+1, first(err, e.Status.valid())
	}
	if e.Artifact != nil {
		n, err = n+1, first(err, e.Artifact.valid())
	}
	if n != 1 {
		return fmt.Errorf("exactly one of task, message, statusUpdate and artifactUpdate is set, not %d of them", n)
	}
	return err
}

func (c *AgentCard) valid() error {
	if err := need("name", c.Name); err != nil {
		return err
	}
	if len(c.Interfaces) == 0 {
		return errors.New("supportedInterfaces is empty: an agent is reached nowhere")
	}
	for i, in := range c.Interfaces {
		if err := need("url", in.URL); err != nil {
			return fmt.Errorf("supportedInterfaces[%d].%w", i, err)
		}
	}
	return nil
}

func (r *SendRequest) valid() error {
	if err := r.Message.valid(); err != nil {
		return fmt.Errorf("message.%w", err)
	}
	if len(r.Message.Parts) == 0 {
		return errors.New("message.parts is empty")
	}
	if p := r.Configuration.Push; p != nil {
		if err := need("url", p.URL); err != nil {
			return fmt.Errorf("configuration.taskPushNotificationConfig.%w", err)
		}
	}
	return length(r.Configuration.HistoryLength)
}
