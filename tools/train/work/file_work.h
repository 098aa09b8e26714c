/// FileWork trains a model from a file on the data of a folder, and evaluates it on those of
/// another folder, or on the part held out.
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
  /// take. Requires: the request names the model and its data, and data for evaluations if there
  /// are any.
  /// Errors: those of open_data, load_model, describe_inputs and read_cut; CompileCapture
  ///         with all parts of the model that are not supported.
  FileWork(const WorkRequest& request, double most);

  [[nodiscard]] std::optional<FixedData> fixed_data() const override;
  [[nodiscard]] std::optional<SampleData> sample_data() const override;
  [[nodiscard]] WorkBytes bytes(const WorkShape& shape) const override;
  [[nodiscard]] Program compile(const WorkShape& shape) override;
  [[nodiscard]] WorkBatch batch(std::int64_t step, const WorkShape& shape) const override;
  [[nodiscard]] std::string located(const std::string& text,
                                    std::int64_t step,
                                    int microbatch,
                                    const WorkShape& shape) const override;
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
  /// Returns the data in microbatches of that shape. Errors: those of open_data.
  [[nodiscard]] const ModelData& data(int microbatches, std::int64_t microbatch_size) const;
  [[nodiscard]] const ModelData& data(const WorkShape& shape) const {
    return data(shape.microbatches, shape.microbatch_size);
  }
  /// Returns the data for evaluations in the microbatches of data(), of which shards have one in a
  /// step. Requires: the request asks for evaluations.
  [[nodiscard]] const ModelData& evaluation_data(int microbatches,
                                                 std::int64_t microbatch_size) const;
  [[nodiscard]] const ModelData& evaluation_data(const WorkShape& shape) const {
    return evaluation_data(shape.microbatches, shape.microbatch_size);
  }

  const WorkRequest request_;
  const double most_;
  std::optional<ModelFile> model_;   ///< until it is compiled; compiling again reads it again
  std::vector<ModelTensor> inputs_;  ///< as the file states them
  mutable std::unique_ptr<const ModelData> data_, evaluation_;
  std::vector<Name> names_;
  WorkBytes bytes_;
};

}  // namespace stagecraft::tools
