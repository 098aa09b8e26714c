/// Nccl is the part of NVIDIA's NCCL that ranks use: transfers from one device to another, and
/// exchanges among the devices of a group, each by a communicator.
///
/// nccl_library.h has NVIDIA's; tests have one for their simulated devices. The runtime includes
/// none of NCCL's headers.
/// NC-1: NCCL pairs the n-th call of a communicator with the n-th call of its other members. It
///       knows no tags.
/// NC-2: a call is work of a stream. It may last until all members that it needs run it, and
///       promises nothing about other communicators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>
#include <c10/core/Stream.h>

namespace stagecraft {

class Nccl {
 public:
  /// Names a communicator to its members.
  using Id = std::array<char, 128>;
  /// A round is a send and a receive. NCCL stalls in a group of more than 256 of these (PyTorch's
  /// pull request 174942).
  static constexpr int kMostRounds = 128;

  /// Communicator is one member's end. Its destructor aborts it.
  ///
  /// Each call gives a stream the work; it is there once the end is settled. All pointers are of
  /// the member's device.
  /// Requires: is_settled(). Errors: DeviceFailed.
  class Communicator {
   public:
    Communicator(const Communicator&) = delete;
    Communicator(Communicator&&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    Communicator& operator=(Communicator&&) = delete;
    virtual ~Communicator() = default;

    virtual void send(int to, const void* data, std::size_t bytes, const c10::Stream& stream) = 0;
    virtual void receive(int from, void* data, std::size_t bytes, const c10::Stream& stream) = 0;
    /// Makes some of the rounds of an exchange of all members with all. Part i of `parts` goes to
    /// member i; part i of `received` comes from member i. In round r a member sends to the one r
    /// behind it, and receives from the one r before it. `bytes`: of a part.
    /// Requires: no more than kMostRounds.
    virtual void all_to_all(const void* parts,
                            void* received,
                            std::size_t bytes,
                            int first_round,
                            int rounds,
                            const c10::Stream& stream) = 0;
    /// Receives the data of all members, in their order. `data` may be this member's part of `all`.
    virtual void all_gather(const void* data,
                            void* all,
                            std::size_t bytes,
                            const c10::Stream& stream) = 0;
    /// Replaces the data by the sum, added in an order that only NCCL knows.
    /// Requires: has_sums_of(dtype).
    virtual void all_reduce(void* data,
                            std::int64_t count,
                            c10::ScalarType dtype,
                            const c10::Stream& stream) = 0;

    /// Returns whether NCCL has done all calls so far: joined, or given the stream its work. It
    /// does the first of them only once the other members have made them too. Errors: DeviceFailed.
    [[nodiscard]] virtual bool is_settled() = 0;

   protected:
    Communicator() = default;
  };

  Nccl(const Nccl&) = delete;
  Nccl(Nccl&&) = delete;
  Nccl& operator=(const Nccl&) = delete;
  Nccl& operator=(Nccl&&) = delete;
  virtual ~Nccl() = default;

  [[nodiscard]] static bool has_sums_of(c10::ScalarType dtype) {
    return dtype == c10::kFloat || dtype == c10::kDouble || dtype == c10::kHalf ||
           dtype == c10::kBFloat16;
  }

  /// Returns the name by which NCCL tells devices apart: the host (NCCL_HOSTID, or else the boot)
  /// and the bus. NCCL refuses two members on one device. Errors: DeviceFailed.
  [[nodiscard]] virtual std::string name_of(const c10::Device& device) = 0;
  /// Returns an id that no other communicator has. Errors: DeviceFailed.
  [[nodiscard]] virtual Id new_id() = 0;
  /// Begins to join the others as `member` of `count`. Errors: DeviceFailed.
  [[nodiscard]] virtual std::unique_ptr<Communicator> join(const Id& id,
                                                           int member,
                                                           int count,
                                                           const c10::Device& device) = 0;
  /// Ends the work of these ends that is under way, with whatever their memory has then; later
  /// calls of the ends fail. Together, because NCCL may wait for the whole device in between. The
  /// other members have to be aborted too. Any thread may call it.
  virtual void abort(const std::vector<std::shared_ptr<Communicator>>& ends) noexcept = 0;

 protected:
  Nccl() = default;
};

}  // namespace stagecraft
