/// FileWork trains a model from a file on the microbatches of a folder, and evaluates it on those
/// of another.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/model_data.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

class FileWork : public Work {
 public:
  /// Reads the folders and the model, and checks that they fit. `most`: bytes that the model may
  /// take. Requires: the request names the model and its data.
  /// Errors: those of MicrobatchFiles, load_model, describe_inputs and read_cut; CompileCapture
  ///         with all parts of the model that are not supported; UsageFile if the data for
  ///         evaluations have other microbatches than those for training.
  FileWork(const WorkRequest& request, double most);

  [[nodiscard]] std::optional<FixedData> fixed_data() const override;
  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override;
  [[nodiscard]] Program compile(const WorkShape& shape) override;
  [[nodiscard]] WorkBatch batch(std::int64_t step, const WorkShape& shape) const override;
  [[nodiscard]] std::int64_t evaluation_batches(const WorkShape& shape) const override;
  [[nodiscard]] WorkBatch evaluation(std::int64_t number, const WorkShape& shape) const override;
  [[nodiscard]] std::vector<NamedTensor> all_names(std::vector<NamedTensor> trained) const override;

 private:
  /// Name is a parameter or buffer of the file, in its order.
  struct Name {
    std::string name;
    std::string first;     ///< the first name of the same tensor, which the program uses
    at::Tensor untouched;  ///< of a buffer, in case the program does not have it
  };

  [[nodiscard]] ModelFile read() const;

  const WorkRequest request_;
  const std::unique_ptr<const ModelData> data_;
  const std::unique_ptr<const ModelData> evaluation_;  ///< null: nothing evaluates
  const double most_;
  std::optional<ModelFile> model_;  ///< until it is compiled; compiling again reads it again
  std::vector<Name> names_;
  WorkBytes bytes_;
};

}  // namespace stagecraft::tools
