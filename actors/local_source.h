/// Data where it is used: batches that ranks read themselves, so that they do not all leave from
/// the driver.
///
///   sc::register_source("digits", [](const std::string& folder) {     // first thing in main():
///     return std::make_unique<Digits>(folder);                        // of driver and workers
///   });
///   ...
///   trainer.step({.source = "digits", .argument = "/data/digits", .number = trainer.steps()});
///
/// A rank makes its source when it first reads from it, and keeps it until it is told of another,
/// or of another argument. It reads one batch ahead. Losses and weights are those of step(inputs,
/// labels), bit by bit.
/// LB-1: a batch is of the shape that the program was compiled for, in the same order of tensors.
/// LB-2: a source gives equal batches for equal numbers, in every process, in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/batch_source.h"
#include "stagecraft/actors/executor/local_batch.h"

namespace stagecraft {

/// What a rank needs of a batch.
struct BatchPart {
  std::int64_t batch = 0;  ///< LocalBatch::number
  int microbatch = 0;      ///< from 0
  int microbatches = 1;    ///< of the batch
  bool inputs = true;      ///< false: nobody looks at them here, they may be left out
  bool labels = true;      ///< likewise
};

/// Thread: a source is used by one rank alone, on a thread of that rank. Several of one program may
/// be at work at once.
class StepSource {
 public:
  virtual ~StepSource() = default;

  /// Batch `number`, as step(inputs, labels) would be given it; a rank takes its share of it.
  /// Errors: whatever it throws is the step's failure.
  [[nodiscard]] virtual LabeledBatch batch(std::int64_t number) = 0;

  /// One microbatch of it alone, for sources that need not read the rest. Nothing, unless
  /// overridden: it is cut out of batch(). Errors: likewise.
  [[nodiscard]] virtual std::optional<LabeledBatch> part(const BatchPart& /*part*/) {
    return std::nullopt;
  }
};

/// Makes the source of a rank. Several ranks of a program may make theirs at once.
using SourceMaker = std::function<std::unique_ptr<StepSource>(const std::string& argument)>;

/// Has this program know a source by name: in its main, before sc::worker_main() and before a
/// trainer is made. Thread: any. Errors: UsageArgument for no name, no maker, and a name that is
/// taken.
void register_source(const std::string& name, SourceMaker make);

/// Errors: UsageArgument for a name that this program has not registered; what the maker throws.
[[nodiscard]] std::unique_ptr<StepSource> make_source(const std::string& name,
                                                      const std::string& argument);

}  // namespace stagecraft
