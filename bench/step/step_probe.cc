#include "stagecraft/bench/step/step_probe.h"

#include <atomic>
#include <chrono>
#include <utility>

#include <ATen/record_function.h>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/bench/step/timed_allocator.h"

namespace stagecraft::bench {
namespace {

std::int64_t nanoseconds_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// The targets that a rank's thread reports to while it is inside a task.
thread_local CallTimes* own_calls = nullptr;
thread_local ProductCalls* own_products = nullptr;
thread_local int open_products = 0;

void begin_allocator() {
  if (own_calls != nullptr) {
    own_calls->begin_allocator(nanoseconds_now());
  }
}

void end_allocator() {
  if (own_calls != nullptr) {
    own_calls->end(nanoseconds_now());
  }
}

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
  if (own_calls != nullptr) {
    own_calls->begin(function.name(), nanoseconds_now());
  }
  return nullptr;
}

void end_call(const at::RecordFunction&, at::ObserverContext*) {
  if (own_calls != nullptr) {
    own_calls->end(nanoseconds_now());
  }
}

bool is_product(const at::RecordFunction& function) {
  return own_products != nullptr && part_of(function.name()) == Part::MatrixProducts;
}

/// Records only the outer one of two products, since one product may call another.
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

/// Callback registers with LibTorch for all threads of the process while it lives.
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

/// While keeps a flag true while it lives.
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
    CallTimes calls;
    ProductCalls products;
    double errand_seconds = 0.0;
    bool behind_vote = false;
    bool has_errand = false;
  };
  std::vector<OfRank> ranks;
  // Set between steps. The orders of a step make them visible to the ranks.
  bool times_calls = false, records_products = false;
  std::function<void(Rank)> errand;

  void before(Rank rank, Op op) {
    OfRank& own = ranks[rank.index()];
    if (std::exchange(own.has_errand, false)) {
      own.errand_seconds = seconds_of([&] { errand(rank); });
    }
    // Sums, vote and update have clocks of their own. After them a rank may no longer be in a step.
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
