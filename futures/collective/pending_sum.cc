#include "stagecraft/futures/collective/pending_sum.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/collective/exchange.h"

namespace stagecraft::collective {
namespace {

constexpr std::int64_t kAlignment = 16;  // elements: parts begin at whole vectors

/// Returns the parts of a buffer that the members own. The last ones may be smaller, or empty.
Tensors parts_of(const at::Tensor& buffer, std::size_t members) {
  const auto count = static_cast<std::int64_t>(members);
  const std::int64_t size =
      ((buffer.numel() + count - 1) / count + kAlignment - 1) / kAlignment * kAlignment;
  Tensors parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = std::min(i * size, buffer.numel());
    parts.push_back(buffer.narrow(0, begin, std::min(size, buffer.numel() - begin)));
  }
  return parts;
}

/// Adds the parts in their order. `sum` may be one of them: a block of it is written when all
/// parts of the block were read. A block fits the processor's cache.
void add_in_order(at::Tensor& sum, const Tensors& parts) {
  constexpr std::int64_t kBlock = std::int64_t{1} << 15U;  // elements
  at::Tensor partial = parts.size() > 2 ? at::empty({kBlock}, sum.options()) : at::Tensor();
  for (std::int64_t begin = 0; begin < sum.numel(); begin += kBlock) {
    const std::int64_t size = std::min(kBlock, sum.numel() - begin);
    const auto block = [&](std::size_t i) { return parts[i].narrow(0, begin, size); };
    at::Tensor place = sum.narrow(0, begin, size);
    at::Tensor so_far = block(0);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      at::Tensor next = i + 1 == parts.size() ? place : partial.narrow(0, 0, size);
      at::add_out(next, so_far, block(i));
      so_far = next;
    }
  }
}

/// Sends the others, in the place of the sum, the reason why there is none.
at::Tensor refusal(const std::string& why) {
  at::Tensor text = at::empty({static_cast<std::int64_t>(why.size())}, at::kByte);
  std::memcpy(text.mutable_data_ptr<std::uint8_t>(), why.data(), why.size());
  return text;
}

std::string text_of(const at::Tensor& refusal) {
  return {reinterpret_cast<const char*>(refusal.const_data_ptr<std::uint8_t>()),
          static_cast<std::size_t>(refusal.numel())};
}

}  // namespace

/// Work is the operation on one member. Callbacks and jobs share it, so that it ends even if nobody
/// waits. The mutex is held while a job uses the buffer.
class PendingSum::Work : public std::enable_shared_from_this<PendingSum::Work> {
 public:
  Work(Kind kind,
       std::string name,
       const Group& group,
       const at::Tensor& buffer,
       std::shared_ptr<Transport> transport,
       std::weak_ptr<JobThread> thread)
      : kind_(kind),
        name_(std::move(name)),
        group_(group),
        self_(static_cast<std::size_t>(std::ranges::lower_bound(group.ranks, transport->self()) -
                                       group.ranks.begin())),
        buffer_(buffer),
        own_(kind == Kind::AllReduce ? parts_of(buffer, group.ranks.size())
                                     : equal_parts(buffer, group.ranks.size())),
        transport_(std::move(transport)),
        thread_(std::move(thread)),
        left_(kind == Kind::AllReduce ? 2 * group.ranks.size() - 1 : 1) {}

  void start(const Sequence& sequence) {
    if (group_.ranks.size() == 1) {
      result_.set_value(kind_ == Kind::AllReduce ? buffer_ : buffer_.clone());
      return;
    }
    const Tag first = tag_of(group_, sequence);
    second_ = tag_of(group_, sequence, Round::Second);
    third_ = tag_of(group_, sequence, Round::Third);
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (i != self_) {
        transport_->lend(group_.ranks[i], first, own_[i]);
      }
    }
    parts = receive_all(*transport_, group_, first, own_[self_]);
    missing_ = parts.size();
    for (const Arrival& part : parts) {
      part.second.on_ready([self = shared_from_this()] {
        if (--self->missing_ == 0) {
          self->post([](Work& work) { work.add(); });
        }
      });
    }
    if (kind_ == Kind::ReduceScatter) {
      return;
    }
    sums = receive_all(*transport_, group_, second_, own_[self_]);
    copied = receive_all(*transport_, group_, third_, own_[self_]);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (i != self_) {
        sums[i].second.on_ready(
            [self = shared_from_this(), i] { self->post([i](Work& work) { work.take(i); }); });
        copied[i].second.on_ready([self = shared_from_this(), i] {
          self->post([i](Work& work) { (void)work.copied[i].second.get(); });
        });
      }
    }
  }

  /// Ends the use of the buffer.
  void abandon() {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
  }

  std::vector<Arrival> parts;  ///< those of its own part, by rank
  // Of an all_reduce only, by rank:
  std::vector<Arrival> sums;
  std::vector<Arrival> copied;  ///< empty tensors: the member has copied this member's sum

  [[nodiscard]] Future<at::Tensor> result() const { return result_.future(); }

 private:
  template <class Job>
  void post(Job job) {
    const std::shared_ptr<JobThread> thread = thread_.lock();
    if (thread == nullptr) {
      return;  // this member has ended
    }
    thread->post([self = shared_from_this(), job] {
      const std::scoped_lock lock(self->mutex_);
      if (!self->abandoned_) {
        self->run(job);
      }
    });
  }

  /// Runs a job. The result is there when all jobs have run, also if one has failed: others wait
  /// for the sum of this member's part, or for the reason why there is none.
  template <class Job>
  void run(Job job) {
    try {
      const at::NoGradGuard no_grad;
      job(*this);
    } catch (const Error& error) {
      error_ = error_ ? error_ : error;
    } catch (const std::exception& error) {
      error_ = error_ ? error_ : Error(Errc::Internal, name_ + ": " + error.what());
    }
    if (--left_ > 0) {
      return;
    }
    if (error_) {
      result_.set_error(*error_);
    } else {
      result_.set_value(kind_ == Kind::AllReduce ? buffer_ : scattered_);
    }
  }

  void add() {
    const Tensors here = tensors_of(parts);
    try {
      check_alike(name_, group_.ranks, here);
      at::Tensor sum = kind_ == Kind::AllReduce ? own_[self_] : at::empty_like(here.front());
      add_in_order(sum, here);
      lend_to_others(sum);
      scattered_ = sum;
    } catch (const Error& error) {
      lend_to_others(refusal(error.message()));
      throw;
    } catch (const std::exception& error) {
      lend_to_others(refusal(error.what()));
      throw;
    }
  }

  void lend_to_others(const at::Tensor& tensor) {
    for (std::size_t i = 0; kind_ == Kind::AllReduce && i < group_.ranks.size(); ++i) {
      if (i != self_) {
        transport_->lend(group_.ranks[i], second_, tensor);
      }
    }
  }

  /// Copies the sum of another member's part, and says so to its owner.
  void take(std::size_t i) {
    const at::Tensor sum = sums[i].second.get();
    const at::Tensor& place = own_[i];
    const bool fits = sum.scalar_type() == place.scalar_type() && sum.numel() == place.numel();
    if (fits) {
      place.copy_(sum);
    }
    transport_->send(group_.ranks[i], third_, at::empty({0}, at::kByte));
    if (!fits) {
      throw Error(Errc::Internal,
                  sum.scalar_type() == at::kByte
                      ? text_of(sum)
                      : fmt::format("in {} rank {} returns a sum of {} elements, not of {}",
                                    name_,
                                    group_.ranks[i].value,
                                    sum.numel(),
                                    place.numel()));
    }
  }

  const Kind kind_;
  const std::string name_;
  const Group group_;
  const std::size_t self_;  // position among the members
  const at::Tensor buffer_;
  const Tensors own_;  // the parts of the buffer, by owner
  const std::shared_ptr<Transport> transport_;
  const std::weak_ptr<JobThread> thread_;  // callbacks may outlive it
  Tag second_, third_;
  std::atomic<std::size_t> missing_ = 0;  // parts that have not arrived
  std::mutex mutex_;
  bool abandoned_ = false;
  std::size_t left_;            // jobs that have not run
  std::optional<Error> error_;  // the first
  at::Tensor scattered_;        // the result of a reduce_scatter
  Promise<at::Tensor> result_;
};

PendingSum::PendingSum(Kind kind,
                       const Group& group,
                       const Sequence& sequence,
                       const at::Tensor& buffer,
                       const std::shared_ptr<Transport>& transport,
                       const std::shared_ptr<JobThread>& thread,
                       std::shared_ptr<WaitBoard> board)
    : name_(fmt::format("{} {} of group {}",
                        kind == Kind::AllReduce ? "all_reduce" : "reduce_scatter",
                        sequence.number,
                        group.id)),
      board_(std::move(board)) {
  work_ = std::make_shared<Work>(kind, name_, group, buffer, transport, thread);
  work_->start(sequence);
}

at::Tensor PendingSum::wait(Deadline deadline) {
  const std::shared_ptr<Work> work = std::exchange(work_, nullptr);
  SC_CHECK(work != nullptr, name_ + " was waited for twice");
  try {
    // A part shows whether its sender has started. Later a sum is missing because of its owner, and
    // the word that it was copied because of who copies it.
    for (const std::vector<Arrival>* round : {&work->parts, &work->sums, &work->copied}) {
      wait_for(*board_, name_, *round, deadline);
    }
    const process_end::Elsewhere elsewhere;  // the job thread works
    return work->result().get();
  } catch (...) {
    work->abandon();
    throw;
  }
}

void PendingSum::abandon() {
  if (work_ != nullptr) {
    work_->abandon();
  }
}

}  // namespace stagecraft::collective
