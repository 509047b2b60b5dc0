import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * An app in plain Java (17 or later), standard library only: launch, user, operation, approval, upload in chunks.
 *
 * <pre>PLATFORM_URL=http://127.0.0.1:4010 PLATFORM_API_KEY=... PORT=5000 java App.java</pre>
 */
public class App {
  static final String BASE = System.getenv("PLATFORM_URL") + "/public/external-app";
  static final String KEY = System.getenv("PLATFORM_API_KEY");
  static final int POLL_MS = 2_500; // spec 4.8, rule 2: every 2 to 5 s
  static final int TRIES = 5;
  static final int PART_BYTES = 1_000;
  static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

  /** The platform said no, and asking again would not help. */
  static class Refused extends Exception {
    Refused(String message) {
      super(message);
    }
  }

  /** One launch. Its token is renewed when it ends; a renewal may give another one. */
  static class Session {
    String token;

    Session(String token) {
      this.token = token;
    }

    /** Repeats what the world did: no answer, 5xx, 429. Renews the token once, and then says no. */
    String call(String method, String path, byte[] body, Map<String, String> headers, int tries)
        throws Refused, InterruptedException {
      boolean renewed = false;
      for (int attempt = 0; attempt < tries; attempt++) {
        long waitMs = 200L << attempt;
        try {
          HttpResponse<String> answer = once(method, path, body, headers);
          int status = answer.statusCode();
          if (status < 300) return answer.body();
          if (status == 403 && !renewed) {
            renewed = true;
            renew();
            continue;
          }
          if (status < 500 && status != 429) throw new Refused(method + " " + path + ": " + status);
          waitMs = Math.max(waitMs, 1_000 * answer.headers().firstValueAsLong("Retry-After").orElse(0));
        } catch (IOException cut) {
          // Cut, refused, or half an answer.
        }
        Thread.sleep(waitMs);
      }
      throw new Refused(method + " " + path + ": no answer in " + tries + " tries");
    }

    HttpResponse<String> once(String method, String path, byte[] body, Map<String, String> headers)
        throws IOException, InterruptedException {
      String escaped = URLEncoder.encode(token, UTF_8).replace("+", "%20");
      HttpRequest.BodyPublisher sent =
          body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
      HttpRequest.Builder request =
          HttpRequest.newBuilder(URI.create(BASE + path.replace("{token}", escaped)))
              .timeout(Duration.ofSeconds(30))
              .header("X-API-KEY", KEY)
              .method(method, sent);
      headers.forEach(request::header);
      return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    void renew() throws Refused, InterruptedException {
      try {
        HttpResponse<String> answer = once("POST", "/token/{token}/renew", null, Map.of());
        if (answer.statusCode() >= 300) throw new Refused("the session is over: " + answer.statusCode());
        token = textOf(answer.body(), "token", token);
      } catch (IOException cut) {
        // The next try renews again.
      }
    }
  }

  /** A text of a JSON object. The values that the app needs are ids and words, which hold no escapes. */
  static String textOf(String json, String field, String otherwise) {
    var found = Pattern.compile("\"" + field + "\"\\s*:\\s*\"([^\"\\\\]*)\"").matcher(json);
    return found.find() ? found.group(1) : otherwise;
  }

  static byte[] json(String text) {
    return text.getBytes(UTF_8);
  }

  static final Map<String, String> JSON = Map.of("content-type", "application/json");

  /** One call each interval, and none after the decision. A call that failed is made up for by the next. */
  static String waitForDecision(Session session, String operationId) throws Refused, InterruptedException {
    while (true) {
      Thread.sleep(POLL_MS);
      try {
        String answer =
            session.call("GET", "/operation/{token}?operationId=" + operationId, null, Map.of(), 1);
        String status = textOf(answer, "status", "REQUESTED");
        if (!status.equals("REQUESTED")) return status;
      } catch (Refused error) {
        if (!error.getMessage().contains("no answer")) throw error;
      }
    }
  }

  static void upload(Session session, String operationId, String name, byte[] content)
      throws Refused, InterruptedException, IOException {
    String wanted = "{\"operationId\":\"" + operationId + "\",\"fileName\":\"" + name + "\"}";
    String begun = session.call("POST", "/file/{token}/upload/initiate", json(wanted), JSON, TRIES);
    String uploadId = textOf(begun, "uploadId", "");
    String key = textOf(begun, "key", "");
    for (int start = 0, number = 1; start < content.length; start += PART_BYTES, number++) {
      byte[] part = Arrays.copyOfRange(content, start, Math.min(content.length, start + PART_BYTES));
      String boundary = UUID.randomUUID().toString();
      // The same bytes of the same part again change nothing: a chunk may be repeated.
      byte[] form = multipart(boundary, Map.of("uploadId", uploadId, "key", key, "partNumber", "" + number), part);
      Map<String, String> type = Map.of("content-type", "multipart/form-data; boundary=" + boundary);
      session.call("POST", "/file/{token}/upload/chunk", form, type, TRIES);
    }
    String whole =
        "{\"uploadId\":\"" + uploadId + "\",\"key\":\"" + key + "\",\"fileSize\":" + content.length + ",\"sourceType\":\"UNKNOWN\"}";
    session.call("POST", "/file/{token}/upload/complete", json(whole), JSON, TRIES);
  }

  static byte[] multipart(String boundary, Map<String, String> fields, byte[] content) throws IOException {
    ByteArrayOutputStream form = new ByteArrayOutputStream();
    String disposition = "--" + boundary + "\r\ncontent-disposition: form-data; name=\"";
    for (var field : fields.entrySet())
      form.write((disposition + field.getKey() + "\"\r\n\r\n" + field.getValue() + "\r\n").getBytes(UTF_8));
    form.write((disposition + "file\"; filename=\"part\"\r\n\r\n").getBytes(UTF_8));
    form.write(content);
    form.write(("\r\n--" + boundary + "--\r\n").getBytes(UTF_8));
    return form.toByteArray();
  }

  static void work(String token) {
    Session session = new Session(token);
    try {
      session.call("GET", "/user/{token}/detail", null, Map.of(), TRIES);
      // The same key, launch and body give the same operation again: a lost answer makes no second one.
      String wanted = "{\"name\":\"A report\",\"description\":\"Writes a report.\",\"parameters\":{\"lines\":100}}";
      Map<String, String> headers =
          Map.of("content-type", "application/json", "Idempotency-Key", UUID.randomUUID().toString());
      String operation = session.call("POST", "/operation/{token}", json(wanted), headers, TRIES);
      String operationId = textOf(operation, "operationId", "");
      if (!waitForDecision(session, operationId).equals("APPROVED")) return;
      StringBuilder report = new StringBuilder(); // the work: only now
      IntStream.range(0, 100).forEach(line -> report.append(line).append(',').append(line * line).append('\n'));
      upload(session, operationId, "report.csv", report.toString().getBytes(UTF_8));
    } catch (Refused | IOException | InterruptedException error) {
      System.out.println(error.getMessage());
    }
  }

  public static void main(String[] args) throws IOException {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "5000"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext(
        "/",
        exchange -> {
          byte[] page = "<title>Report</title><p>Approve the report in the platform.".getBytes(UTF_8);
          exchange.getResponseHeaders().set("content-type", "text/html");
          exchange.getResponseHeaders().set("referrer-policy", "no-referrer");
          exchange.sendResponseHeaders(200, page.length);
          exchange.getResponseBody().write(page);
          exchange.close();
          String query = exchange.getRequestURI().getRawQuery();
          var token = Pattern.compile("(?:^|&)token=([^&]+)").matcher(query == null ? "" : query);
          if (token.find()) new Thread(() -> work(URLDecoder.decode(token.group(1), UTF_8))).start();
        });
    server.start();
    System.out.println("app ready http://127.0.0.1:" + server.getAddress().getPort());
  }
}
