/// Archive: the records of a model's file, a ZIP in the manner of LibTorch, whose own reader does
/// the reading. Used by the importers.
///
/// AR-1: a record's size is held against the file's before anything is allocated for it, and all
///       records that were read together are no larger than the file. What is compressed, or lies
///       about its size, is refused.
/// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Storage.h>

namespace caffe2::serialize {
class PyTorchStreamReader;
class ReadAdapterInterface;
}  // namespace caffe2::serialize

namespace stagecraft {

class Archive {
 public:
  /// Errors: UsageFile for a file that is not there, cannot be read or is no such archive.
  explicit Archive(const std::string& path);
  /// Of bytes that outlive it; `name` is for messages.
  /// Errors: UsageFile for what is no such archive.
  Archive(std::string_view bytes, std::string name);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// What the file is called in messages.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Names without the root folder.
  [[nodiscard]] std::vector<std::string> records() const;
  [[nodiscard]] bool has(const std::string& record) const;

  /// Errors: UsageFile, naming the record, for one that is missing or breaks AR-1.
  [[nodiscard]] std::string text(const std::string& record);
  /// Likewise, as memory for tensors, which are its only owners.
  [[nodiscard]] c10::Storage storage(const std::string& record);

  /// Errors: UsageFile, always, with the file's name.
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  void open(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> bytes);
  /// Keeps AR-1.
  void claim(const std::string& record);

  std::string name_;
  std::size_t size_ = 0;
  std::size_t claimed_ = 0;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

}  // namespace stagecraft
