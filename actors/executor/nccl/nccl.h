/// Nccl is the part of NVIDIA's NCCL that ranks use: transfers from one device to another, each
/// through a communicator of two.
///
/// nccl_library.h has NVIDIA's; tests have one for their simulated devices. The runtime includes
/// none of NCCL's headers.
/// NC-1: NCCL pairs the n-th send of a communicator with its n-th receive. It knows no tags.
/// NC-2: both are work of a stream. A send may last until its receive runs, and promises nothing
///       about other communicators.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Stream.h>

namespace stagecraft {

class Nccl {
 public:
  /// Names a communicator to both of its ends.
  using Id = std::array<char, 128>;
  enum class End { Sends, Receives };

  /// Communicator is one end. Its destructor aborts it.
  class Communicator {
   public:
    Communicator(const Communicator&) = delete;
    Communicator(Communicator&&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    Communicator& operator=(Communicator&&) = delete;
    virtual ~Communicator() = default;

    /// Give the stream a transfer of `bytes` at `data`; it is there once the end is settled.
    /// Requires: is_settled(). Errors: DeviceFailed.
    virtual void send(const void* data, std::size_t bytes, const c10::Stream& stream) = 0;
    virtual void receive(void* data, std::size_t bytes, const c10::Stream& stream) = 0;
    /// Returns whether NCCL has done all calls so far: joined, or given the stream its transfer. It
    /// does the first of them only once the other end has made them too. Errors: DeviceFailed.
    [[nodiscard]] virtual bool is_settled() = 0;

   protected:
    Communicator() = default;
  };

  Nccl(const Nccl&) = delete;
  Nccl(Nccl&&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  Nccl& operator=(Nccl&&) = delete;
  virtual ~Nccl() = default;

  /// Returns a name for the device that no other device has, on any host. NCCL refuses two ends on
  /// one device. Errors: DeviceFailed.
  [[nodiscard]] virtual std::string name_of(const c10::Device& device) = 0;
  /// Returns an id that no other communicator has. Errors: DeviceFailed.
  [[nodiscard]] virtual Id new_id() = 0;
  /// Begins to join the other end. Errors: DeviceFailed.
  [[nodiscard]] virtual std::unique_ptr<Communicator> join(const Id& id,
                                                           End end,
                                                           const c10::Device& device) = 0;
  /// Ends the transfers of these ends that are under way, with whatever their memory has then;
  /// later calls of the ends fail. Together, because NCCL may wait for the whole device in between.
  /// The other ends have to be aborted too. Any thread may call it.
  virtual void abort(const std::vector<std::shared_ptr<Communicator>>& ends) noexcept = 0;

 protected:
  Nccl() = default;
};

}  // namespace stagecraft
