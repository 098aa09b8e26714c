#include "stagecraft/bench/step_probe.h"

#include <atomic>
#include <chrono>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <ATen/record_function.h>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/bench/self_times.h"
#include "stagecraft/bench/timed_allocator.h"

namespace stagecraft::bench {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

struct HashText {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// What is timed of one rank, on its thread.
class RankCalls {
 public:
  void begin(std::string_view name) { begin(account_of(name)); }
  void begin_allocator() { begin(kAllocator); }
  void end() { times_.end(nanoseconds_now()); }

  [[nodiscard]] std::vector<CallTime> take() {
    std::vector<CallTime> all;
    for (std::size_t i = 0; i < accounts_.size(); ++i) {
      CallTime& account = accounts_[i];
      account.seconds = 1e-9 * static_cast<double>(times_.of(i));
      all.push_back(account);
      account.calls = 0;
    }
    times_.clear();
    return all;
  }

 private:
  static constexpr std::size_t kAllocator = 0;

  void begin(std::size_t account) {
    ++accounts_[account].calls;
    times_.begin(account, nanoseconds_now());
  }

  std::size_t account_of(std::string_view name) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) {
      return known->second;
    }
    numbers_.emplace(name, accounts_.size());
    accounts_.push_back({.name = std::string(name), .part = part_of(name)});
    return accounts_.size() - 1;
  }

  SelfTimes times_;
  std::vector<CallTime> accounts_{{.name = "allocator", .part = Part::Allocator}};
  std::unordered_map<std::string, std::size_t, HashText, std::equal_to<>> numbers_;
};

// Of a rank's thread while it is inside a task: what it reports to.
thread_local RankCalls* own_calls = nullptr;
thread_local ProductCalls* own_products = nullptr;
thread_local int open_products = 0;

void begin_allocator() {
  if (own_calls != nullptr) {
    own_calls->begin_allocator();
  }
}

void end_allocator() {
  if (own_calls != nullptr) {
    own_calls->end();
  }
}

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
  if (own_calls != nullptr) {
    own_calls->begin(function.name());
  }
  return nullptr;
}

void end_call(const at::RecordFunction&, at::ObserverContext*) {
  if (own_calls != nullptr) {
    own_calls->end();
  }
}

bool is_product(const at::RecordFunction& function) {
  return own_products != nullptr && part_of(function.name()) == Part::MatrixProducts;
}

/// One product may call another.
std::unique_ptr<at::ObserverContext> begin_product(const at::RecordFunction& function) {
  if (is_product(function) && open_products++ == 0) {
    own_products->record(*function.operator_name(), function.inputs());
  }
  return nullptr;
}

void end_product(const at::RecordFunction& function, at::ObserverContext*) {
  if (is_product(function)) {
    --open_products;
  }
}

/// LibTorch tells all threads of the process while one lives.
class Callback {
 public:
  explicit Callback(at::RecordFunctionCallback callback)
      : handle_(at::addGlobalCallback(std::move(
            callback.scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION})))) {}
  ~Callback() { at::removeCallback(handle_); }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

 private:
  at::CallbackHandle handle_;
};

/// True while it lives.
class While {
 public:
  explicit While(bool& flag) : flag_(flag) { flag_ = true; }
  ~While() { flag_ = false; }
  While(const While&) = delete;
  While& operator=(const While&) = delete;

 private:
  bool& flag_;
};

}  // namespace

struct StepProbe::Impl {
  struct OfRank {
    RankCalls calls;
    ProductCalls products;
    double errand_seconds = 0.0;
    bool behind_vote = false;
    bool has_errand = false;
  };
  std::vector<OfRank> ranks;
  // Set between steps, whose orders make it known to the ranks.
  bool times_calls = false, records_products = false;
  std::function<void(Rank)> errand;

  void before(Rank rank, Op op) {
    OfRank& own = ranks[rank.index()];
    if (std::exchange(own.has_errand, false)) {
      own.errand_seconds = seconds_of([&] { errand(rank); });
    }
    // Sums, vote and update have clocks of their own, and behind them a rank may be in nobody's
    // step any more.
    own.behind_vote = op == Op::Vote || (own.behind_vote && op != Op::Run && op != Op::Recv);
    const bool counts = !own.behind_vote && (op == Op::Run || op == Op::Free || op == Op::Send);
    own_calls = times_calls && counts ? &own.calls : nullptr;
    own_products = records_products && counts ? &own.products : nullptr;
  }
};

StepProbe::StepProbe(int ranks) : impl_(std::make_unique<Impl>()) {
  impl_->ranks = std::vector<Impl::OfRank>(static_cast<std::size_t>(ranks));
}
StepProbe::~StepProbe() = default;

std::function<void(Rank, const Instruction&)> StepProbe::hook() {
  return [impl = impl_.get()](Rank rank, const Instruction& instruction) {
    impl->before(rank, instruction.op);
  };
}

std::vector<std::vector<CallTime>> StepProbe::timed(const std::function<void()>& steps) {
  {
    const TimedAllocator allocator({&begin_allocator, &end_allocator});
    const Callback callback(at::RecordFunctionCallback(&begin_call, &end_call));
    const While timing(impl_->times_calls);
    steps();
  }
  std::vector<std::vector<CallTime>> all;
  for (Impl::OfRank& own : impl_->ranks) {
    all.push_back(own.calls.take());
  }
  return all;
}

std::vector<ProductCalls> StepProbe::products(const std::function<void()>& step) {
  {
    at::RecordFunctionCallback recorder(&begin_product, &end_product);
    const Callback callback(std::move(recorder.needsInputs(true)));
    const While recording(impl_->records_products);
    step();
  }
  std::vector<ProductCalls> all;
  for (Impl::OfRank& own : impl_->ranks) {
    all.push_back(std::exchange(own.products, {}));
  }
  return all;
}

std::vector<double> StepProbe::on_ranks(const std::function<void(Rank)>& errand,
                                        const std::function<void()>& step) {
  impl_->errand = errand;
  for (Impl::OfRank& own : impl_->ranks) {
    own.has_errand = true;
  }
  step();
  std::vector<double> seconds;
  for (const Impl::OfRank& own : impl_->ranks) {
    seconds.push_back(own.errand_seconds);
  }
  return seconds;
}

}  // namespace stagecraft::bench
