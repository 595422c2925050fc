package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Conditional requests to an S3 server at the system property s3.endpoint, in place of the class of this name in
 * hudi-aws, which the bundle does not have. The lock provider that calls it is the JVM's own.
 */
public final class S3StorageLockClient implements StorageLockClient {
  private static final String SIGNED =
      "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
  private final HttpClient client = HttpClient.newHttpClient();
  private final URI uri;

  public S3StorageLockClient(String owner, String lockFile, Properties options) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(lockFile);
    uri = URI.create(System.getProperty("s3.endpoint") + "/" + place.getLeft() + "/" + place.getRight());
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData wanted, Option<StorageLockFile> previous) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(uri).PUT(BodyPublishers.ofByteArray(StorageLockFile.toByteArray(wanted)));
    if (previous.isPresent()) {
      request.header("If-Match", previous.get().getVersionId());
    } else {
      request.header("If-None-Match", "*");
    }
    HttpResponse<byte[]> answer = send(request);
    if (answer.statusCode() == 200) {
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(wanted, tag(answer))));
    }
    boolean isTaken = answer.statusCode() == 412;
    return Pair.of(isTaken ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    HttpResponse<byte[]> answer = send(HttpRequest.newBuilder(uri).GET());
    if (answer.statusCode() == 200) {
      StorageLockFile found = StorageLockFile.createFromStream(new ByteArrayInputStream(answer.body()), tag(answer));
      return Pair.of(LockGetResult.SUCCESS, Option.of(found));
    }
    boolean isMissing = answer.statusCode() == 404;
    return Pair.of(isMissing ? LockGetResult.NOT_EXISTS : LockGetResult.UNKNOWN_ERROR, Option.empty());
  }

  @Override
  public Option<String> readObject(String path, boolean checkExistsFirst) {
    return Option.empty();
  }

  @Override
  public boolean writeObject(String path, String content) {
    return false;
  }

  @Override
  public void close() {}

  private HttpResponse<byte[]> send(HttpRequest.Builder request) {
    try {
      return client.send(request.header("Authorization", SIGNED).build(), BodyHandlers.ofByteArray());
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static String tag(HttpResponse<byte[]> answer) {
    return answer.headers().firstValue("ETag").orElseThrow();
  }
}
