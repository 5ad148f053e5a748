package latchkey

import (
	"sync"
	"time"
)

const (
	timeoutsMax = 5
	probeWait   = time.Second
)

// outcome is how an attempt ended.
type outcome int

const (
	// outcomeUnknown says nothing about the service.
	outcomeUnknown outcome = iota
	outcomeAnswered
	outcomeTimeout
)

// permit is the permit for one attempt. That of an attempt which is no probe is 0.
type permit int

// breaker is a circuit breaker: a service that hangs costs a few calls their time-out, and not every call. It opens
// when several attempts in a row got no answer in time. Then one attempt at a time is a probe. Any answer closes it.
type breaker struct {
	isOff bool
	now   func() time.Time

	mutex    sync.Mutex
	timeouts int
	probeAt  time.Time
	// The probe that is under way, or 0.
	probe  permit
	probes permit
}

func (b *breaker) isOpen() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.timeouts >= timeoutsMax
}

// admit returns a permit for one attempt, whose end must be reported, or false if it must not be sent.
func (b *breaker) admit() (permit, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.timeouts < timeoutsMax {
		return 0, true
	}
	if b.probe != 0 || b.now().Before(b.probeAt) {
		return 0, false
	}
	b.probes++
	b.probe = b.probes
	return b.probe, true
}

// end reports how the attempt of a permit ended.
func (b *breaker) end(p permit, ended outcome) {
	if b.isOff {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	isProbe := p != 0 && p == b.probe
	if isProbe {
		b.probe = 0
	}
	switch ended {
	case outcomeAnswered:
		b.timeouts = 0
	case outcomeTimeout:
		b.timeouts++
	}
	if isProbe || (ended == outcomeTimeout && b.timeouts == timeoutsMax) {
		b.probeAt = b.now().Add(probeWait)
	}
}
