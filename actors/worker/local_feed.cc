#include "stagecraft/actors/worker/local_feed.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/actors/data/local_source.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/host_memory.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/lower/feeds.h"

namespace stagecraft {
namespace {

constexpr int kAhead = 1;

}  // namespace

/// Reads the rank's share of one batch after the other: as inputs, in the order of the feeds.
class LocalFeed::Share final : public BatchSource {
 public:
  Share(const LocalFeed& feed, LocalBatch first) : feed_(feed), at_(std::move(first)) {
    for (const Feed& one : feed_.feeds_) {
      (one.label ? labels_ : inputs_) = true;
    }
  }

  [[nodiscard]] bool is_of(const LocalBatch& batch) const {
    return at_.source == batch.source && at_.argument == batch.argument;
  }
  void go_to(std::int64_t number) { at_.number = number; }

  void begin_epoch() override {}

  std::optional<LabeledBatch> next() override {
    try {
      const at::NoGradGuard no_grad;
      LabeledBatch share = read();
      ++at_.number;
      return share;
    } catch (...) {
      const Error why = foreign_error(std::current_exception());
      Error error(why.code(),
                  fmt::format("batch {} of the source \"{}\" (\"{}\") cannot be read by process {} "
                              "on {}, where this rank runs",
                              at_.number,
                              at_.source,
                              at_.argument,
                              getpid(),
                              host_name()));
      throw error.because(why);
    }
  }

 private:
  LabeledBatch read() {
    if (source_ == nullptr) {
      source_ = make_source(at_.source, at_.argument);
    }
    whole_.reset();
    parts_.clear();
    memory_ = memory_for(feed_.device_);
    LabeledBatch share;
    for (const Feed& feed : feed_.feeds_) {
      share.inputs.emplace_back(tensor_of(feed));
    }
    return share;
  }

  at::Tensor tensor_of(const Feed& feed) {
    const auto position = static_cast<std::size_t>(feed.position);
    const LabeledBatch* part = part_with(feed.microbatch);
    const LabeledBatch& from = part == nullptr ? *whole_ : *part;
    const BatchSlice& slice = (feed.label ? feed_.labels_ : feed_.inputs_)[position];
    return to_memory_order(microbatch_of((feed.label ? from.labels : from.inputs)[position],
                                         slice,
                                         part == nullptr ? feed.microbatch.index() : 0,
                                         memory_),
                           slice.order);
  }

  /// Returns the microbatch by itself; null if it must be cut out of the whole batch.
  const LabeledBatch* part_with(Microbatch m) {
    if (const auto known = parts_.find(m); known != parts_.end()) {
      return &known->second;
    }
    if (whole_) {
      return nullptr;
    }
    std::optional<LabeledBatch> part = source_->part({.batch = at_.number,
                                                      .microbatch = m.value,
                                                      .microbatches = feed_.microbatches_,
                                                      .inputs = inputs_,
                                                      .labels = labels_});
    if (!part) {
      whole_ = source_->batch(at_.number);
      check(*whole_, feed_.microbatches_);
      return nullptr;
    }
    check(*part, 1);
    return &parts_.emplace(m, std::move(*part)).first->second;
  }

  /// Checks the sides that this rank reads. Keeps LF-1.
  void check(const LabeledBatch& batch, int microbatches) const {
    if (inputs_) {
      check_batch(batch.inputs, feed_.inputs_, microbatches, "input");
    }
    if (labels_) {
      check_batch(batch.labels, feed_.labels_, microbatches, "label");
    }
  }

  const LocalFeed& feed_;
  LocalBatch at_;  ///< the next batch
  bool inputs_ = false, labels_ = false;
  std::unique_ptr<StepSource> source_;
  // These belong to the batch that is being read.
  HostMemory memory_ = HostMemory::Pageable;
  std::optional<LabeledBatch> whole_;
  std::map<Microbatch, LabeledBatch> parts_;
};

LocalFeed::LocalFeed(const RankSetup& setup)
    : feeds_(feeds_of(
          *setup.train.list, setup.train.rank, *setup.train.tables, pointers_to(setup.stages))),
      inputs_(setup.inputs),
      labels_(setup.labels),
      microbatches_(setup.train.tables->microbatches),
      device_(setup.options.device) {}

LocalFeed::~LocalFeed() = default;

void LocalFeed::begin(const LocalBatch& batch) {
  batch_ = batch;
  tensors_.clear();
  is_read_ = false;
}

at::Tensor LocalFeed::take(EdgeId edge, Microbatch microbatch) {
  if (!is_read_) {
    read();
    is_read_ = true;
  }
  auto found = tensors_.extract(std::pair(edge, microbatch));
  SC_CHECK(!found.empty(), "a list receives an input or label once in a step");
  return std::move(found.mapped());
}

void LocalFeed::read() {
  if (!ahead_ || next_ != batch_) {
    ahead_.reset();  // first: it reads from the share
    if (share_ == nullptr || !share_->is_of(batch_)) {
      share_.reset();  // free its memory before the next one takes some
      share_ = std::make_unique<Share>(*this, batch_);
    }
    share_->go_to(batch_.number);
    ahead_.emplace(*share_, /*epochs=*/1, kAhead);
  }
  next_ = batch_;
  ++next_.number;
  std::optional<LabeledBatch> share;
  try {
    const process_end::Elsewhere waiting;
    share = ahead_->next();
  } catch (...) {
    ahead_.reset();  // read nothing after a failure (PF-1)
    throw;
  }
  for (std::size_t i = 0; i < feeds_.size(); ++i) {
    tensors_[{feeds_[i].edge, feeds_[i].microbatch}] = std::move(share->inputs[i].tensor);
  }
}

}  // namespace stagecraft
