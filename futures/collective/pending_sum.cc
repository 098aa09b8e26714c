#include "stagecraft/futures/collective/pending_sum.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/base/process/standard_lack_of_memory.h"
#include "stagecraft/futures/collective/exchange.h"
#include "stagecraft/futures/collective/sum_route.h"

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
/// parts of the block were read. On a CPU a block fits the cache.
void add_in_order(at::Tensor& sum, const Tensors& parts) {
  constexpr std::int64_t kInCache = std::int64_t{1} << 15U;  // elements
  const std::int64_t most = sum.is_cpu() ? kInCache : sum.numel();
  at::Tensor partial = parts.size() > 2 ? at::empty({most}, sum.options()) : at::Tensor();
  for (std::int64_t begin = 0; begin < sum.numel(); begin += most) {
    const std::int64_t size = std::min(most, sum.numel() - begin);
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
  at::Tensor text = at::empty({static_cast<std::int64_t>(why.size()), 1}, at::kByte);
  std::memcpy(text.mutable_data_ptr<std::uint8_t>(), why.data(), why.size());
  return text;
}

/// Buffers are flat, and a refusal is not.
bool is_refusal(const at::Tensor& sum) {
  return sum.dim() != 1;
}

/// Returns the error of a member that gets no sum: a consequence, so that the error of the member
/// that refused is told as the cause.
Error refused(const at::Tensor& refusal) {
  return {Errc::WorkerAborted,
          std::string(reinterpret_cast<const char*>(refusal.const_data_ptr<std::uint8_t>()),
                      static_cast<std::size_t>(refusal.numel()))};
}

/// Incoming is a tensor on its way. Its future says only that it is there, so nobody keeps what a
/// member has lent once it was taken.
struct Incoming {
  Promise<at::Tensor> came;
  at::Tensor tensor;

  /// Errors: those of the transport.
  at::Tensor take() {
    (void)came.future().get();
    return std::exchange(tensor, at::Tensor());
  }
};

/// Expected is what a round of the operation brings, in the order in which it was asked for.
struct Expected {
  std::vector<Arrival> arrivals;
  std::vector<std::shared_ptr<Incoming>> incoming;

  std::shared_ptr<Incoming> add(Rank from) {
    const auto& one = incoming.emplace_back(std::make_shared<Incoming>());
    arrivals.emplace_back(from, one->came.future());
    return one;
  }
  [[nodiscard]] std::size_t size() const { return incoming.size(); }
  [[nodiscard]] std::vector<Rank> ranks() const {
    std::vector<Rank> ranks;
    for (const auto& [rank, arrival] : arrivals) {
      ranks.push_back(rank);
    }
    return ranks;
  }
};

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
       std::shared_ptr<Passing> passing,
       std::weak_ptr<JobThread> thread)
      : kind_(kind),
        name_(std::move(name)),
        route_(kind == Kind::AllReduce ? sum_route(group, *transport)
                                       : SumRoute{.here = group.ranks}),
        here_{.ranks = route_.here, .id = group.id},
        self_(static_cast<std::size_t>(std::ranges::lower_bound(here_.ranks, transport->self()) -
                                       here_.ranks.begin())),
        buffer_(buffer),
        own_(kind == Kind::AllReduce ? parts_of(buffer, here_.ranks.size())
                                     : equal_parts(buffer, here_.ranks.size())),
        transport_(std::move(transport)),
        passing_(std::move(passing)),
        thread_(std::move(thread)) {}

  void start(const Sequence& sequence) {
    if (here_.ranks.size() == 1) {
      finish(kind_ == Kind::AllReduce ? buffer_ : buffer_.clone());
      return;
    }
    first_ = tag_of(here_, sequence);
    second_ = tag_of(here_, sequence, Round::Second);
    third_ = tag_of(here_, sequence, Round::Third);
    for (std::size_t i = 0; i < own_.size(); ++i) {
      if (i == self_) {
        continue;
      }
      transport_->lend(here_.ranks[i], first_, passing_->hand_over(own_[i]));
    }
    if (route_.before) {  // its partial sum comes first in the order of addition
      expect(parts, *route_.before, first_);
    }
    for (const Rank rank : here_.ranks) {
      rank == transport_->self() ? add_own_part() : expect(parts, rank, first_);
    }
    if (kind_ == Kind::AllReduce) {
      expect_sums();
    } else {
      for (const Rank reader : others()) {
        expect_word_from(reader);
      }
    }
    left_ += sums.size() + copied.size();
    missing_ = parts.size();
    ++left_;
    for (const auto& [from, part] : parts.arrivals) {
      part.on_ready([self = shared_from_this()] {
        if (--self->missing_ == 0) {
          self->post([](Work& work) { return work.add(); });
        }
      });
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums.arrivals[i].second.on_ready(
          [self = shared_from_this(), i] { self->post([i](Work& work) { return work.take(i); }); });
    }
    for (std::size_t i = 0; i < copied.size(); ++i) {
      copied.arrivals[i].second.on_ready([self = shared_from_this(), i] {
        self->post([i](Work& work) { return work.end_loan(i); });
      });
    }
  }

  /// Ends the use of the buffer.
  void abandon() {
    const std::scoped_lock lock(mutex_);
    abandoned_ = true;
  }

  Expected parts;  ///< those of its own part, in the order of addition
  /// For an all_reduce: sums of other parts, and of its own from the next host.
  Expected sums;
  /// Empty tensors: the rank has copied this member's sum, or has added its part in a
  /// reduce_scatter.
  Expected copied;

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

  /// Returns the exception that is being handled.
  [[nodiscard]] Error caught() const {
    try {
      throw;
    } catch (const Error& error) {
      return error;
    } catch (const c10::OutOfMemoryError& error) {
      return {Errc::DeviceOutOfMemory, name_ + ": " + error.what_without_backtrace()};
    } catch (const c10::Error& error) {
      const std::string what = error.what_without_backtrace();
      return {says_lack_of_memory(what) ? Errc::DeviceOutOfMemory : Errc::Internal,
              name_ + ": " + what};
    } catch (const std::exception& error) {
      const auto lack = standard_lack_of_memory(error, "use smaller buckets of gradients");
      return lack ? Error(lack->code(), name_ + ": " + lack->text())
                  : Error(Errc::Internal, name_ + ": " + error.what());
    }
  }

  /// Runs a job, which returns a failure that the others learn of. The result is there when all
  /// jobs have run, also after such a failure: others wait for the sum of this member's part, or
  /// for the reason why there is none. A job that throws may have told them nothing, so nothing
  /// will come from them either.
  template <class Job>
  void run(Job job) {
    try {
      const at::NoGradGuard no_grad;
      const std::optional<Error> failure = job(*this);
      error_ = error_ ? error_ : failure;
    } catch (...) {
      end(error_ ? *error_ : caught());
      return;
    }
    if (--left_ > 0) {
      return;
    }
    if (error_) {
      result_.set_error(*error_);
      return;
    }
    try {
      finish(kind_ == Kind::AllReduce ? buffer_ : scattered_);
    } catch (...) {  // a device that fails cannot even record its point
      result_.set_error(caught());
    }
  }

  /// Ends all waits for this operation with the error.
  void end(const Error& why) {
    abandoned_ = true;
    result_.set_error(why);
    for (const Expected* round : {&parts, &sums, &copied}) {
      for (const auto& one : round->incoming) {
        one->came.set_error(why);
      }
    }
  }

  /// Lets go of tensors that were read. A device's stream may read them until the result is there.
  void let_go(Tensors read) {
    if (!buffer_.is_cpu()) {
      std::ranges::move(read, std::back_inserter(kept_));
    }
  }

  /// `result`: may be the buffer, of which this lets go.
  void finish(at::Tensor result) {
    result = passing_->hand_over(result);
    if (buffer_.is_cpu()) {
      own_.clear();  // before the caller gives the buffer back
      buffer_.reset();
    }
    result_.set_value(std::move(result));
  }

  /// Receives a tensor, unless this operation ends here before.
  void expect(Expected& round, Rank from, const Tag& tag) {
    const std::shared_ptr<Incoming> here = round.add(from);
    const Future<at::Tensor> arrival = transport_->receive(from, tag);
    arrival.on_ready([here, arrival] {
      try {
        here->tensor = arrival.get();
        here->came.set_value(at::Tensor());
      } catch (const Error& why) {
        here->came.set_error(why);
      }
    });
  }
  void add_own_part() {
    const std::shared_ptr<Incoming> here = parts.add(transport_->self());
    here->tensor = passing_->hand_over(own_[self_]);
    here->came.set_value(at::Tensor());
  }

  /// Lists what arrives after the parts.
  void expect_sums() {
    for (std::size_t i = 0; i < here_.ranks.size(); ++i) {
      if (i != self_) {
        expect_sum(here_.ranks[i], i);
        readers_.push_back(here_.ranks[i]);
      }
    }
    if (route_.after) {
      expect_sum(*route_.after, self_);
    }
    if (route_.before) {
      readers_.push_back(*route_.before);
    }
    for (const Rank reader : readers_) {
      expect_word_from(reader);
    }
  }

  [[nodiscard]] std::vector<Rank> others() const {
    std::vector<Rank> ranks = here_.ranks;
    std::erase(ranks, transport_->self());
    return ranks;
  }

  /// `reader`: reads what this member lends.
  void expect_word_from(Rank reader) { expect(copied, reader, third_); }
  void say_done_to(Rank lender) {
    transport_->send(lender, third_, passing_->hand_over(at::empty({0}, buffer_.options())));
  }

  void expect_sum(Rank from, std::size_t part) {
    expect(sums, from, second_);
    part_of_sum_.push_back(part);
  }

  std::optional<Error> add() {
    at::Tensor sum;
    std::optional<Error> why;
    Tensors here;
    for (const auto& part : parts.incoming) {
      here.push_back(part->take());
    }
    try {
      for (at::Tensor& part : here) {
        part = passing_->take_over(std::move(part));
      }
      if (is_refusal(here.front())) {
        throw refused(here.front());
      }
      check_alike(name_, parts.ranks(), here);
      sum = kind_ == Kind::AllReduce ? own_[self_] : at::empty_like(here.front());
      add_in_order(sum, here);
    } catch (...) {
      why = caught();
    }
    let_go(std::move(here));  // before its lenders learn that they are read
    scattered_ = sum;
    const at::Tensor handed_on = why ? refusal(why->message()) : sum;
    if (kind_ == Kind::ReduceScatter) {
      for (const Rank lender : others()) {
        say_done_to(lender);
      }
    } else if (route_.after) {
      transport_->lend(
          *route_.after, first_, passing_->hand_over(handed_on));  // the sum comes back
    } else {
      lend_to_readers(handed_on);
    }
    return why;
  }

  void lend_to_readers(const at::Tensor& sum) {
    for (const Rank reader : readers_) {
      transport_->lend(reader, second_, passing_->hand_over(sum));
    }
  }

  /// Copies a sum, and says so to the rank that lent it. The sum of its own part goes on.
  std::optional<Error> take(std::size_t i) {
    const Rank from = sums.arrivals[i].first;
    const at::Tensor sum = passing_->take_over(sums.incoming[i]->take());
    const at::Tensor& place = own_[part_of_sum_[i]];
    const bool fits = !is_refusal(sum) && sum.scalar_type() == place.scalar_type() &&
                      sum.numel() == place.numel();
    if (fits) {
      place.copy_(sum);
    }
    let_go({sum});
    say_done_to(from);
    if (part_of_sum_[i] == self_) {
      lend_to_readers(fits ? place : sum);
    }
    if (fits) {
      return std::nullopt;
    }
    return is_refusal(sum) ? refused(sum)
                           : Error(Errc::Internal,
                                   fmt::format("in {} rank {} returns a sum of {} elements, not "
                                               "of {}",
                                               name_,
                                               from.value,
                                               sum.numel(),
                                               place.numel()));
  }

  /// The reader is done with what was lent to it.
  std::optional<Error> end_loan(std::size_t i) {
    (void)passing_->take_over(copied.incoming[i]->take());
    return std::nullopt;
  }

  const Kind kind_;
  const std::string name_;
  const SumRoute route_;
  const Group here_;        // the members of the route
  const std::size_t self_;  // position among them
  at::Tensor buffer_;
  Tensors own_;  // the parts of the buffer, by owner
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<Passing> passing_;
  const std::weak_ptr<JobThread> thread_;  // callbacks may outlive it
  Tag first_, second_, third_;             // by round
  std::vector<std::size_t> part_of_sum_;   // by sum
  std::vector<Rank> readers_;              // of its sum
  std::atomic<std::size_t> missing_ = 0;   // parts that have not arrived
  std::mutex mutex_;
  bool abandoned_ = false;
  std::size_t left_ = 0;        // jobs that have not run
  std::optional<Error> error_;  // the first
  at::Tensor scattered_;        // the result of a reduce_scatter
  Tensors kept_;                // by a device, until its result is there
  Promise<at::Tensor> result_;
};

PendingSum::PendingSum(Kind kind,
                       const Group& group,
                       const Sequence& sequence,
                       const at::Tensor& buffer,
                       const std::shared_ptr<Transport>& transport,
                       std::shared_ptr<Passing> passing,
                       const std::shared_ptr<JobThread>& thread,
                       std::shared_ptr<WaitBoard> board)
    : name_(fmt::format("{} {} of group {}",
                        kind == Kind::AllReduce ? "all_reduce" : "reduce_scatter",
                        sequence.number,
                        group.id)),
      passing_(std::move(passing)),
      board_(std::move(board)) {
  work_ = std::make_shared<Work>(kind, name_, group, buffer, transport, passing_, thread);
  work_->start(sequence);
}

at::Tensor PendingSum::wait(Deadline deadline) {
  const std::shared_ptr<Work> work = std::exchange(work_, nullptr);
  SC_CHECK(work != nullptr, name_ + " was waited for twice");
  try {
    // A part shows whether its sender has started. Later a sum is missing because of its owner, and
    // the word that it was copied because of who copies it.
    for (const Expected* round : {&work->parts, &work->sums, &work->copied}) {
      wait_for(*board_, name_, round->arrivals, deadline);
    }
    const process_end::Elsewhere elsewhere;  // the job thread works
    return passing_->take_over(work->result().get());
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
