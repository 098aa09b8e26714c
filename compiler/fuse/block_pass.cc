#include "stagecraft/compiler/fuse/block_pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/accumulate.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kAlignment = 64;  // bytes

const TensorFacts& facts(const Trace& trace, TracedValue value) {
  return trace.values[static_cast<std::size_t>(value)];
}

std::int64_t integer(const TracedCall& call, std::size_t operand) {
  return std::get<c10::IValue>(call.operands[operand]).toInt();
}

bool is_last(std::int64_t dim, std::size_t dimensions) {
  return dim == -1 || dim == static_cast<std::int64_t>(dimensions) - 1;
}

/// Whether the operator works along the last dimension, as its row does.
bool is_along_last(const TracedCall& call, std::string_view name, std::size_t dimensions) {
  const auto last = [&](std::size_t operand) {
    return is_last(integer(call, operand), dimensions);
  };
  if (name == "aten::sum.dim_IntList" || name == "aten::mean.dim" || name == "aten::amax") {
    const auto& dims = std::get<c10::IValue>(call.operands[1]);
    return dims.isIntList() && dims.toIntVector().size() == 1 &&
           is_last(dims.toIntVector().front(), dimensions) &&
           std::get<c10::IValue>(call.operands[2]).toBool() &&
           (call.operands.size() < 4 || std::get<c10::IValue>(call.operands[3]).isNone());
  }
  if (name == "aten::_softmax" || name == "aten::_log_softmax") {
    return last(1) && !std::get<c10::IValue>(call.operands[2]).toBool();
  }
  if (name == "aten::cat") {
    return last(1);
  }
  if (name == "aten::slice.Tensor") {
    return last(1) && integer(call, 4) == 1;
  }
  if (name == "aten::expand") {
    return true;
  }
  return last(2);  // the derivatives, and splits
}

/// Where the results of a view begin along the last dimension.
Sizes begins_of(const TracedCall& call, const Trace& trace, std::string_view name) {
  Sizes begins{0};
  if (name == "aten::slice.Tensor") {
    const auto& start = std::get<c10::IValue>(call.operands[2]);
    const std::int64_t size = facts(trace, reads_of(call).front()).sizes.back();
    const std::int64_t begin = start.isNone() ? 0 : start.toInt();
    begins.front() = std::clamp<std::int64_t>(begin < 0 ? begin + size : begin, 0, size);
  }
  for (std::size_t i = 1; i < call.results.size(); ++i) {
    begins.push_back(begins.back() + facts(trace, call.results[i - 1]).sizes.back());
  }
  return begins;
}

at::Tensor view_of(const c10::Storage& storage,
                   at::ScalarType dtype,
                   at::IntArrayRef sizes,
                   at::IntArrayRef strides,
                   std::int64_t offset) {
  at::Tensor view =
      at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW,
                                               c10::Storage(storage),
                                               c10::DispatchKeySet(c10::DispatchKey::CPU),
                                               c10::scalarTypeToTypeMeta(dtype));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return view;
}

/// Memory of a thread for what a block makes on the way: the same for all passes, so that it stays
/// in cache.
class Scratch {
 public:
  std::byte* of(std::int64_t bytes) {
    if (bytes > size_) {
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(
          kAlignment,
          static_cast<std::size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment))));
      if (memory_ == nullptr) {
        size_ = 0;
        throw std::bad_alloc();
      }
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t size_ = 0;
};

}  // namespace

bool fits(const Trace& trace, const TracedCall& call, const BlockDomain& domain) {
  const std::string name = operator_name(call);
  const BlockOperator* const row = block_operator(name);
  if (row == nullptr) {
    return false;
  }
  const std::vector<TracedValue> reads = reads_of(call);
  const auto taken = [&](TracedValue v) { return domain.takes(facts(trace, v)); };
  const auto filled = [&](TracedValue v) { return domain.fills(facts(trace, v)); };
  if (reads.empty() || !std::ranges::all_of(reads, taken) ||
      !std::ranges::all_of(call.results, filled)) {
    return false;
  }
  if (row->form != BlockOperator::Form::Element) {
    const TensorFacts& first = facts(trace, reads.front());
    const bool dense_rows = row->form == BlockOperator::Form::View || first.strides.back() == 1;
    return dense_rows && is_along_last(call, name, domain.rows.size() + 1);
  }
  if (row->by_place == nullptr || !row->by_place(call)) {
    return true;
  }
  const auto in_order = [&](TracedValue v) {
    const TensorFacts& value = facts(trace, v);
    return value.sizes.empty() || (domain.fills(value) && value.sizes.back() == domain.columns &&
                                   value.strides == domain.dense_strides(value.sizes));
  };
  return domain.aligned && std::ranges::all_of(reads, in_order) && in_order(call.results.front());
}

// ---- where values lie ---------------------------------------------------------------------------

BlockPass::BlockPass(const Trace& trace,
                     const std::vector<std::size_t>& calls,
                     std::vector<TracedValue> kept,
                     BlockDomain domain)
    : domain_(std::move(domain)), kept_(std::move(kept)), places_(trace.values.size()) {
  for (const std::size_t number : calls) {
    const TracedCall& call = trace.calls[number];
    const BlockOperator* const op = block_operator(operator_name(call));
    place_operands(trace, call);
    if (op->form == BlockOperator::Form::View) {
      place_views(trace, call);
      continue;
    }
    const TracedValue result = call.results.front();
    const bool is_kept = std::ranges::find(kept_, result) != kept_.end();
    places_[slot_of(result)] = {.facts = facts(trace, result), .tensor = is_kept ? result : -1};
    steps_.push_back({op, call});
  }
  assign_slots();
}

void BlockPass::place_operands(const Trace& trace, const TracedCall& call) {
  for (const TracedValue value : reads_of(call)) {
    if (!places_[slot_of(value)]) {
      places_[slot_of(value)] = {.facts = facts(trace, value), .tensor = value};
    }
  }
}

void BlockPass::place_views(const Trace& trace, const TracedCall& call) {
  const TracedValue base = reads_of(call).front();
  const Place of = at(base);
  const Sizes begins = begins_of(call, trace, operator_name(call));
  const std::int64_t step = of.tensor < 0 || of.facts.sizes.empty() ? 1 : of.facts.strides.back();
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    places_[slot_of(call.results[i])] = {.facts = facts(trace, call.results[i]),
                                         .tensor = of.tensor,
                                         .slot = 0,
                                         .base = base,
                                         .offset = of.offset + begins[i] * step};
  }
}

TracedValue BlockPass::root_of(TracedValue value) const {
  while (at(value).base >= 0) {
    value = at(value).base;
  }
  return value;
}

/// A slot is free again behind the last step that reads what is in it.
void BlockPass::assign_slots() {
  std::vector<std::size_t> last(places_.size(), 0);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    last[slot_of(steps_[s].result())] = s;
    for (const TracedValue value : reads_of(steps_[s].call)) {
      last[slot_of(root_of(value))] = s;
    }
  }
  std::vector<bool> taken;
  std::vector<std::pair<std::size_t, std::size_t>> held;  // last step, slot
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    Place& place = *places_[slot_of(steps_[s].result())];
    if (place.tensor < 0) {
      const std::int64_t bytes =
          place.facts.sizes.back() * static_cast<std::int64_t>(c10::elementSize(place.facts.dtype));
      std::size_t slot = 0;
      while (slot < slots_.size() && (taken[slot] || slots_[slot] != bytes)) {
        ++slot;
      }
      if (slot == slots_.size()) {
        slots_.push_back(bytes);
        taken.push_back(false);
      }
      taken[slot] = true;
      place.slot = slot;
      held.emplace_back(last[slot_of(steps_[s].result())], slot);
    }
    std::erase_if(held, [&](const auto& one) {
      if (one.first == s) {
        taken[one.second] = false;
      }
      return one.first == s;
    });
  }
}

// ---- a run --------------------------------------------------------------------------------------

/// What a thread computes blocks of one extent on: a tensor for each value, moved from block to
/// block.
class BlockPass::Bench {
 public:
  Bench(const BlockPass& pass,
        const std::vector<at::Tensor>& values,
        const Sizes& extent,
        std::byte* scratch,
        const std::vector<std::int64_t>& begins)
      : pass_(pass), values_(values), extent_(extent), begins_(begins), scratch_(scratch) {
    views_.resize(pass.places_.size());
    for (const Step& step : pass.steps_) {
      BlockOperands call;
      for (const TracedOperand& operand : step.call.operands) {
        call.operands.push_back(of(operand));
      }
      call.result = view(step.result());
      kernels_.push_back(BlockKernel::of(*step.op, call));
      calls_.push_back(std::move(call));
    }
  }

  /// Computes the block that begins at these indices of the row dimensions.
  void run(const Sizes& begin) {
    for (const Mover& mover : movers_) {
      std::int64_t offset = mover.offset;
      for (std::size_t d = 0; d < begin.size(); ++d) {
        offset += begin[d] * mover.strides[d];
      }
      mover.tensor->set_storage_offset(offset);
    }
    for (std::size_t s = 0; s < calls_.size(); ++s) {
      if (kernels_[s]) {
        kernels_[s]->run(calls_[s]);
      } else {
        pass_.steps_[s].op->run(calls_[s]);
      }
    }
  }

 private:
  /// A view of a tensor of the run.
  struct Mover {
    c10::TensorImpl* tensor;
    std::int64_t offset;
    Sizes strides;  ///< per row dimension
  };

  BlockOperands::One of(const TracedOperand& operand) {
    if (const auto* value = std::get_if<TracedValue>(&operand)) {
      return &view(*value);
    }
    if (const auto* list = std::get_if<std::vector<TracedValue>>(&operand)) {
      std::vector<at::Tensor> tensors;
      for (const TracedValue value : *list) {
        tensors.push_back(view(value));
      }
      return tensors;
    }
    return &std::get<c10::IValue>(operand);
  }

  const at::Tensor& view(TracedValue value) {
    at::Tensor& made = views_[slot_of(value)];
    if (!made.defined()) {
      const Place& place = pass_.at(value);
      if (place.tensor < 0) {
        const TracedValue root = pass_.root_of(value);
        made = view_of(scratch_of(pass_.at(root)),
                       place.facts.dtype,
                       block_sizes(place),
                       block_strides(value),
                       place.offset);
      } else if (place.facts.sizes.empty()) {
        made = values_[slot_of(place.tensor)];
      } else {
        made = moved(place, value);
      }
    }
    return made;
  }

  at::Tensor moved(const Place& place, TracedValue value) {
    const at::Tensor& whole = values_[slot_of(place.tensor)];
    const Sizes strides = block_strides(value);
    Mover mover{.tensor = nullptr,
                .offset = whole.storage_offset() + place.offset,
                .strides = Sizes(pass_.domain_.rows.size(), 0)};
    for (std::size_t d = 0; d + 1 < strides.size(); ++d) {
      if (place.facts.sizes[d] != 1) {
        mover.strides[d + missing(place)] = strides[d];
      }
    }
    at::Tensor view =
        view_of(whole.storage(), place.facts.dtype, block_sizes(place), strides, mover.offset);
    mover.tensor = view.unsafeGetTensorImpl();
    movers_.push_back(std::move(mover));
    return view;
  }

  /// How many leading dimensions of the domain a value does not have.
  [[nodiscard]] std::size_t missing(const Place& place) const {
    return pass_.domain_.rows.size() + 1 - place.facts.sizes.size();
  }

  [[nodiscard]] Sizes block_sizes(const Place& place) const {
    Sizes sizes = place.facts.sizes;
    for (std::size_t d = 0; d + 1 < sizes.size(); ++d) {
      sizes[d] = sizes[d] == 1 ? 1 : extent_[d + missing(place)];
    }
    return sizes;
  }

  [[nodiscard]] Sizes block_strides(TracedValue value) const {
    const Place& place = pass_.at(value);
    if (place.base < 0) {
      return place.tensor < 0 ? pass_.domain_.dense_strides(block_sizes(place))
                              : place.facts.strides;
    }
    const Sizes& base_sizes = pass_.at(place.base).facts.sizes;
    const Sizes base = block_strides(place.base);
    Sizes strides(place.facts.sizes.size(), 0);
    const std::size_t added = strides.size() - base.size();
    for (std::size_t d = 0; d < base.size(); ++d) {
      const bool repeated = base_sizes[d] == 1 && place.facts.sizes[d + added] != 1;
      strides[d + added] = repeated ? 0 : base[d];
    }
    return strides;
  }

  [[nodiscard]] c10::Storage scratch_of(const Place& place) const {
    const std::int64_t begin = begins_[place.slot];
    const std::int64_t bytes = begins_[place.slot + 1] - begin;
    return c10::Storage(c10::Storage::use_byte_size_t(),
                        static_cast<std::size_t>(bytes),
                        c10::DataPtr(scratch_ + begin, at::kCPU),
                        /*allocator=*/nullptr,
                        /*resizable=*/false);
  }

  const BlockPass& pass_;
  const std::vector<at::Tensor>& values_;
  const Sizes extent_;
  const std::vector<std::int64_t>& begins_;
  std::byte* const scratch_;
  std::vector<at::Tensor> views_;
  std::vector<Mover> movers_;
  std::vector<BlockOperands> calls_;
  std::vector<std::optional<BlockKernel>> kernels_;
};

void BlockPass::run(std::vector<at::Tensor>& values) const {
  for (const TracedValue value : kept_) {
    const TensorFacts& made = at(value).facts;
    values[slot_of(value)] =
        at::empty_strided(made.sizes, made.strides, at::TensorOptions(made.dtype));
  }
  const std::int64_t elements = c10::multiply_integers(domain_.extent) * domain_.columns;
  at::parallel_for(0,
                   domain_.blocks(),
                   std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / elements),
                   [&](std::int64_t begin, std::int64_t end) { run_blocks(values, begin, end); });
}

void BlockPass::run_blocks(const std::vector<at::Tensor>& values,
                           std::int64_t begin,
                           std::int64_t end) const {
  static thread_local Scratch scratch;
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below;
  std::vector<std::int64_t> begins{0};
  for (const std::int64_t row : slots_) {
    const std::int64_t bytes = row * c10::multiply_integers(domain_.extent);
    begins.push_back(begins.back() + (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  std::byte* const memory = scratch.of(begins.back());
  const std::int64_t chunks = domain_.chunks();
  const std::int64_t rest = domain_.rows[domain_.split] % domain_.extent[domain_.split];
  std::optional<Bench> whole, last;
  Sizes first(domain_.rows.size(), 0);
  for (std::int64_t block = begin; block < end; ++block) {
    const std::int64_t chunk = block % chunks;
    std::int64_t outer = block / chunks;
    std::ranges::fill(first, 0);
    first[domain_.split] = chunk * domain_.extent[domain_.split];
    for (auto d = domain_.order.rbegin(); d != domain_.order.rend(); ++d) {
      if (*d != domain_.split && domain_.extent[*d] != domain_.rows[*d]) {
        first[*d] = outer % domain_.rows[*d];
        outer /= domain_.rows[*d];
      }
    }
    const bool partial = rest != 0 && chunk == chunks - 1;
    std::optional<Bench>& bench = partial ? last : whole;
    if (!bench) {
      Sizes extent = domain_.extent;
      extent[domain_.split] = partial ? rest : extent[domain_.split];
      bench.emplace(*this, values, extent, memory, begins);
    }
    bench->run(first);
  }
}

}  // namespace stagecraft
