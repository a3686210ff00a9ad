package kube

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fault is why there is no answer from the API server.
type fault uint8

const (
	// none is no fault, or one that the reflector has its own answer to.
	none fault = iota
	// lost is a server that cannot be reached, or cannot serve.
	lost
	// refused is a server that serves, though not this to us.
	refused
)

func faultOf(err error) fault {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return none
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return none // what we knew is too old, or newer than the server's: it is listed again
	case errors.As(err, &status) && refusal(status.Status().Code):
		return refused
	}
	return lost
}

// wordsOf is an error in the words of the API server or of the network. That of a request names its long address
// first, which says nothing that is new.
func wordsOf(err error) string {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}

// refusal reports whether an HTTP status is about the request and not about the server.
func refusal(code int32) bool {
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
