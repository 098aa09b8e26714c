/// Archive reads the records of a model's file, a ZIP archive as LibTorch writes it. It uses
/// LibTorch's own reader. The importers use it.
///
/// AR-1: a record's size is checked against the file's size before anything is allocated for it,
///       and all records that were read are together no larger than the file. A record that is
///       compressed or has a false size is refused.
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
  /// Opens the file. Errors: UsageFile for a file that does not exist, cannot be read or is not
  /// such an archive.
  explicit Archive(const std::string& path);
  /// Reads an archive from memory. `bytes` must outlive the archive; `name` is for messages.
  /// Errors: UsageFile if the bytes are not such an archive.
  Archive(std::string_view bytes, std::string name);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// Returns the file's name for messages.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns the names of the records without the root folder.
  [[nodiscard]] std::vector<std::string> records() const;
  [[nodiscard]] bool has(const std::string& record) const;

  /// Returns the record. Errors: UsageFile, naming the record, if it is missing or breaks AR-1.
  [[nodiscard]] std::string text(const std::string& record);
  /// Returns the record as memory for tensors, which are its only owners. Errors: as text.
  [[nodiscard]] c10::Storage storage(const std::string& record);

  /// Throws UsageFile with the file's name.
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  void open(std::shared_ptr<caffe2::serialize::ReadAdapterInterface> bytes);
  /// Adds the record to those that were read. Keeps AR-1.
  void claim(const std::string& record);

  std::string name_;
  std::size_t size_ = 0;
  std::size_t claimed_ = 0;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

}  // namespace stagecraft
