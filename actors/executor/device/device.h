/// Device is the hardware of a rank: its streams, points in them, its clock, and the memory of its
/// steps. A GPU replaces this seam.
///
/// The executor has one, and only its plan thread uses it. It ends after everything in its memory.
/// DV-1: a stream does its work in the order in which it was given; only wait() orders work of
///       different streams.
/// DV-2: the time of an event is known once the device has reached it: ask after synchronize().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/step/rank_times.h"
#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class Device {
 public:
  /// Event is a point after the work given to a stream. Only the device that made it can read it.
  struct Event {
    std::int64_t value = 0;
  };

  /// StepScope is one step of a rank.
  class StepScope {
   public:
    StepScope(const StepScope&) = delete;
    StepScope(StepScope&&) = delete;
    StepScope& operator=(const StepScope&) = delete;
    StepScope& operator=(StepScope&&) = delete;
    virtual ~StepScope() = default;

   protected:
    StepScope() = default;
  };

  Device(const Device&) = delete;
  Device(Device&&) = delete;
  Device& operator=(const Device&) = delete;
  Device& operator=(Device&&) = delete;
  virtual ~Device() = default;

  /// Returns the device of the rank's tensors.
  [[nodiscard]] virtual c10::Device place() const = 0;

  /// Sends the work that LibTorch gets on this thread to `stream` from now on.
  virtual void use(StreamId stream) = 0;
  /// Returns the point after everything given to `stream` so far.
  [[nodiscard]] virtual Event record(StreamId stream) noexcept = 0;
  /// Makes `stream` continue only after the device has reached `event`.
  virtual void wait(StreamId stream, Event event) = 0;
  /// Says that `stream` uses the tensor. Its memory, once freed, serves again only after all that
  /// the stream is given until then.
  virtual void keep_for(StreamId stream, const at::Tensor& tensor) = 0;

  /// Returns the tensor as a rank of this process takes it over: with the point of `stream` after
  /// which it can be read.
  [[nodiscard]] virtual at::Tensor hand_over(StreamId stream, const at::Tensor& tensor) = 0;
  /// Returns a tensor that another rank's device has handed over, or one of the host's memory, as a
  /// tensor of this device that `stream` can read.
  [[nodiscard]] virtual at::Tensor take_over(StreamId stream, at::Tensor tensor) = 0;

  /// Waits until all work is done. Earlier events may be forgotten at the next step. Errors: those
  /// of the device's work, and of record().
  virtual void synchronize() = 0;

  /// Returns the time at which the device reached the event. Units: nanoseconds of the host's
  /// steady clock.
  [[nodiscard]] virtual std::int64_t time_of(Event event) const = 0;

  /// Begins a step. While the result lives, this thread allocates from the memory that the rank
  /// keeps for its steps.
  [[nodiscard]] virtual std::unique_ptr<StepScope> begin_step() = 0;

  /// Returns the memory of the step in progress. Of an accelerator only the peak is known: what
  /// this process had allocated there, weights and other ranks included, since a step last began.
  [[nodiscard]] virtual RankMemory memory_use() const = 0;

 protected:
  Device() = default;
};

/// Returns the CPU as a device. The calling thread does the work itself, so an event is a time, and
/// awaited work was done before by the same thread. Steps have the memory of a pool
/// (step_memory.h). `memory_limit`: TrainerOptions::memory_limit.
[[nodiscard]] std::unique_ptr<Device> cpu_device(
    std::optional<std::int64_t> memory_limit = std::nullopt);

}  // namespace stagecraft
